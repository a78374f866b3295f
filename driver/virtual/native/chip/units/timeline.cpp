#include "timeline.h"
#include "processor.h"

#include <algorithm>
#include <cmath>

namespace vnpu {

Timeline &Timeline::instance() {
  static Timeline *timeline = new Timeline;
  return *timeline;
}

double Timeline::copyCycles(const Command &command) const {
  const ChipDescription &chip = Processor::instance()->chip();
  const double bytes = double(command.size), inMemory = bytes / chip.memories[0].bytesPerCycle;
  const double start = command.counted ? chip.hostStartCycles : 0; // once for the pieces of a copy
  switch (command.kind) {
  case Kind::CopyIn:
  case Kind::CopyOut:
    if (Way(command.index) == Way::Link && chip.linkBytesPerCycle > 0)
      return (command.counted ? chip.linkLatency : 0) + bytes / chip.linkBytesPerCycle;
    return start + bytes / chip.hostBytesPerCycle;
  case Kind::CopyOnDevice:
    return start + 2 * inMemory;
  case Kind::Fill:
    return start + inMemory;
  default:
    return 0;
  }
}

void Timeline::begin(uint32_t queue, Kind kind) {
  std::lock_guard lock(mutex_);
  if (!waits(kind) && !active_++)
    queues_[queue].now = newest_;
}

void Timeline::pass(uint32_t queue, const Command &command) {
  std::lock_guard lock(mutex_);
  Queue &own = queues_[queue];
  if (command.kind == Kind::Wait)
    own.now = std::max(own.now, doneAt(command.index, command.value));
  else if (const double cycles = copyCycles(command); cycles > 0)
    own.now = engineFree_ = std::max(own.now, engineFree_) + cycles;
}

std::pair<uint64_t, uint64_t> Timeline::launch(uint32_t queue, double cycles) {
  std::lock_guard lock(mutex_);
  Queue &own = queues_[queue];
  const double start = std::max(own.now, coresFree_),
               period = 1000 / Processor::instance()->chip().clockMegahertz;
  own.now = coresFree_ = start + cycles;
  return {uint64_t(std::llround(start * period)), uint64_t(std::llround(cycles * period))};
}

void Timeline::completed(uint32_t queue, Kind kind, uint64_t count) {
  std::lock_guard lock(mutex_);
  Queue &own = queues_[queue];
  active_ -= !waits(kind);
  newest_ = std::max(newest_, own.now);
  own.count = count;
  own.done.push_back(own.now);
  if (own.done.size() > Remembered)
    own.done.pop_front();
}

// Called with the lock held. For a command that is not remembered, the time of a later one.
double Timeline::doneAt(uint32_t queue, uint64_t count) {
  const Queue &other = queues_[queue];
  const uint64_t back = other.count - std::min(count, other.count);
  if (other.done.empty() || !count)
    return 0;
  return other.done[other.done.size() - 1 - std::min<size_t>(size_t(back), other.done.size() - 1)];
}

uint64_t Timeline::nanoseconds(uint32_t queue) {
  std::lock_guard lock(mutex_);
  return uint64_t(std::llround(queues_[queue].now * 1000 / Processor::instance()->chip().clockMegahertz));
}

} // namespace vnpu
