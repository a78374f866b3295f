// Which calls of kernels may update memory without atomic operations.
#pragma once

#include <cstdint>

namespace tpk {

// Held while a thread runs programs of a kernel with atomic operations. Calls that use atomic operations run
// beside each other, and so do calls that use the locks of stripes of memory; an exclusive call runs alone. A
// call of the last two kinds waits for nobody but the holder of a lock (see `exclusive` and `stripes` in the
// compiler), so whoever waits for it waits for its programs only, and it is never waited for: a call that
// finds others of another kind running, or waiting, uses atomic operations.
class Updates {
public:
  Updates(bool updates, bool mayExclude, bool mayLock);
  ~Updates();
  Updates(const Updates &) = delete;
  Updates &operator=(const Updates &) = delete;

  bool exclusive() const { return use_ == Use::Exclusive; }
  // The address of the locks that the call uses, or 0.
  int64_t locks() const;

  // In a forked child, where nothing of the parent runs.
  static void forked();

private:
  enum class Use { None, Atomic, Locks, Exclusive };

  Use use_ = Use::None;
};

} // namespace tpk
