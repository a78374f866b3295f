// One life of a chip, from start to end: the process, the region shared with it, and the thread that watches
// it and forwards what kernels print.
#pragma once

#include "error.h"
#include "process.h"
#include "protocol.h"
#include "range.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace vnpu {

class Chip {
public:
  // Starts a process and waits until it is ready. Throws DeviceLost; `RangeTaken` if the chip cannot map the
  // range.
  struct RangeTaken {};
  Chip(const vnpu_config &config, const Range &range);
  // Ends the process.
  ~Chip();
  Chip(const Chip &) = delete;
  Chip &operator=(const Chip &) = delete;

  const Region &region() const { return region_; }
  int64_t process() const { return process_.id(); }
  // The settings with which the chip was started.
  const vnpu_config &config() const { return config_; }

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Throws DeviceLost with the reason if the chip is lost.
  void requireAlive() const {
    if (lost())
      throwLost();
  }
  // Ends the chip for `reason`; returns when its process is gone.
  void stop(const std::string &reason);
  // The same if `what` in the region is not what the chip has written. Throws DeviceLost.
  [[noreturn]] void loseOverwritten(const std::string &what);
  // Returns when everything that kernels had printed before the call has been forwarded.
  void awaitPrinted();

private:
  [[noreturn]] void throwLost() const;
  void share(const Range &range);
  void startWatcher();
  void awaitStart();
  void watch();
  bool forward();
  bool outputIsForwarded() const;
  bool looksDead();
  void lose(const std::string &reason);
  std::string ownReason() const;

  const vnpu_config config_;
  int descriptor_ = -1;
  size_t bytes_ = 0;
  void *start_ = nullptr;
  Region region_;
  Process process_;
  std::thread watcher_;
  std::mutex stopping_;
  std::atomic<bool> ended_{false}; // the process is gone
  std::atomic<bool> lost_{false};  // `reason_` then has the reason
  std::atomic<bool> forwarding_{false};
  std::atomic<uint64_t> forwarded_{0}; // bytes of output
  mutable std::mutex reasonMutex_;
  std::string reason_, killedFor_, overwritten_;
  std::atomic<bool> ready_{false};
  uint64_t seenHeartbeat_ = 0;
  int silentTicks_ = 0;
};

} // namespace vnpu
