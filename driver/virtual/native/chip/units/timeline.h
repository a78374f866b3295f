// The clock of a chip with a description. It counts what the chip does, not the time of the machine: copies
// and launches take modelled time, and nothing passes while the chip is idle.
#pragma once

#include "description.h"

#include "../chip.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace vnpu {

class Timeline {
public:
  static Timeline &instance();

  // A queue begins a command. If the chip does nothing else, the queue's clock is set to that of the chip.
  void begin(uint32_t queue, Kind kind);
  // A copy or fill runs on the one engine for them; a wait for another queue's work takes until that was
  // done.
  void pass(uint32_t queue, const Command &command);
  // Launches run one after another. Returns the nanoseconds at which it begins, and that it takes.
  std::pair<uint64_t, uint64_t> launch(uint32_t queue, double cycles);
  // A queue has completed `count` commands.
  void completed(uint32_t queue, Kind kind, uint64_t count);
  // When the queue's last command was done.
  uint64_t nanoseconds(uint32_t queue);

private:
  struct Queue {
    double now = 0;
    // When the newest commands were done; the last of them is number `count`.
    std::deque<double> done;
    uint64_t count = 0;
  };
  static constexpr size_t Remembered = 4096;

  double doneAt(uint32_t queue, uint64_t count);
  double copyCycles(const Command &command) const;

  std::mutex mutex_;
  std::unordered_map<uint32_t, Queue> queues_;
  double engineFree_ = 0, coresFree_ = 0, newest_ = 0;
  uint32_t active_ = 0; // queues that carry out a command, and do not wait
};

} // namespace vnpu
