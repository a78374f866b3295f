// Which calls of kernels may update memory without locks.
#pragma once

namespace tpk {

// Held while a thread runs programs of a kernel with atomic operations. These calls exclude each other only
// where one of them updates memory without locks. Such a call waits for nobody (see `exclusive` in the
// compiler), so whoever waits for it waits for its programs only, and it is never waited for: a call that
// finds others running takes locks.
class Updates {
public:
  enum class Use { None, Shared, Exclusive };

  explicit Updates(Use wanted);
  ~Updates();
  Updates(const Updates &) = delete;
  Updates &operator=(const Updates &) = delete;

  bool exclusive() const { return use_ == Use::Exclusive; }

  // In a forked child, where nothing of the parent runs.
  static void forked();

private:
  Use use_;
};

} // namespace tpk
