// Points in a stream's work that others can wait for and take the time of.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace tpk {

// One passing of an event in a stream. Recording the event again makes a new one, so that whoever waits for
// an earlier recording is not held up by a later one.
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
