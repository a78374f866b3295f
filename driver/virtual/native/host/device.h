// A device as the C API hands it out: the session with the chip of now, over resets and forks.
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
  // The session of now, for one call. Throws DeviceLost in a process that was forked off.
  std::shared_ptr<Session> session();
  void reset();
  // Ends the chip, unless it is that of the parent.
  void close();

  // Around fork(): the child finds the device whole, with a chip that is not its own.
  void lockForFork() { mutex_.lock(); }
  void unlockAfterFork(bool child);

private:
  std::shared_ptr<Session> start();
  // Takes the session away; nothing is left of one that is the parent's.
  std::shared_ptr<Session> take();

  const vnpu_config config_;
  std::atomic<uint64_t> handles_{1};
  std::mutex mutex_, resets_;
  std::unique_ptr<Range> range_;
  std::shared_ptr<Session> session_;
  bool foreign_ = false; // the session is that of the process that this one was forked off from
};

} // namespace vnpu
