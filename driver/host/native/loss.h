// The loss of a rank of the device's group: launches that may wait for it must end.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

namespace tpk {

class Loss {
public:
  void tell(std::string reason) {
    std::lock_guard lock(mutex_);
    reason_ = std::move(reason);
    happened_.store(true, std::memory_order_release);
  }
  void clear() { happened_.store(false, std::memory_order_relaxed); }
  bool happened() const { return happened_.load(std::memory_order_relaxed); }
  std::string reason() const {
    std::lock_guard lock(mutex_);
    return reason_;
  }

private:
  std::atomic<bool> happened_{false};
  mutable std::mutex mutex_;
  std::string reason_;
};

} // namespace tpk
