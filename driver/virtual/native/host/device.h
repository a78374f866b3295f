// A device of the C API: the session with the current chip, across resets and forks.
#pragma once

#include "session.h"

#include <memory>
#include <mutex>

namespace vnpu {

class Device {
public:
  explicit Device(const vnpu_config &config);
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const vnpu_config &config() const { return config_; }
  // The current session, for one call. Throws DeviceLost in a forked process.
  std::shared_ptr<Session> session();
  void reset();
  // Ends the chip, unless it belongs to the parent.
  void close();

  // Called around fork(): the child gets a consistent device, whose chip belongs to the parent.
  void lockForFork() { mutex_.lock(); }
  void unlockAfterFork(bool child);

private:
  std::shared_ptr<Session> start();
  // Takes the session away; drops one that belongs to the parent.
  std::shared_ptr<Session> take();

  const vnpu_config config_;
  std::atomic<uint64_t> handles_{1};
  std::mutex mutex_, resets_;
  std::unique_ptr<Range> range_;
  std::shared_ptr<Session> session_;
  bool foreign_ = false; // the session belongs to the parent process
};

} // namespace vnpu
