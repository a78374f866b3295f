// Events: points in a stream's work that others can wait for, and whose time is recorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace tpk {

// One recording of an event on a stream. Recording the event again creates a new one, so that a wait for an
// earlier recording does not wait for a later one.
class Record {
public:
  void finish();
  bool finished() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait();                                         // throws Interrupted
  int64_t nanoseconds() const { return nanoseconds_; } // of the monotonic clock; valid when finished

private:
  std::atomic<uint32_t> done_{0};
  int64_t nanoseconds_ = 0;
};

using RecordPointer = std::shared_ptr<Record>;

} // namespace tpk
