#include "events.h"
#include "futex.h"
#include "interrupts.h"

#include <chrono>

namespace tpk {

void Record::finish() {
  nanoseconds_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::steady_clock::now().time_since_epoch())
                     .count();
  done_.store(1, std::memory_order_release);
  futexWake(done_);
}

void Record::wait() {
  while (!finished()) {
    futexWait(done_, 0, InterruptMilliseconds);
    if (!finished() && interrupted())
      throw Interrupted();
  }
}

} // namespace tpk
