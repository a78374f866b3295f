// Reports crashes of kernels before the process ends as it would have.
#pragma once

#include "job.h"

#include <csignal>
#include <sys/types.h>

namespace tpk {

// What one thread runs. Signal handlers find it by the thread's id.
struct Activity {
  std::atomic<pid_t> thread{0};                    // 0: not in use
  std::atomic<const Function *> function{nullptr}; // set while it runs; the other members are then valid
  const void *args;
  const void *scratch;
  int64_t begin, end;
  int32_t grid[3];
  Activity *next;

  // Sets what the thread's next programs have in common.
  void tell(const void *arguments, const void *memory, const int32_t (&counts)[3]) {
    args = arguments;
    scratch = memory;
    for (int axis = 0; axis < 3; ++axis)
      grid[axis] = counts[axis];
  }
};

// The calling thread's activity. The first call gives the thread a signal stack, unless it has one.
Activity &ownActivity();

// During its lifetime, the thread of the activity runs programs of a kernel.
class Running {
public:
  Running(Activity &activity, const Function &function, int64_t begin, int64_t end) : activity_(activity) {
    activity_.begin = begin;
    activity_.end = end;
    activity_.function.store(&function, std::memory_order_release);
  }
  ~Running() { activity_.function.store(nullptr, std::memory_order_release); }
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;

private:
  Activity &activity_;
};

// The signals that threads of the pool and of streams block, so that the interpreter's threads handle them:
// all but those of crashes, which end the process at once if they are blocked.
sigset_t signalsOfInterpreter();
// Installs handlers for the signals of crashes. Signals that no kernel caused are passed to the previous
// handlers.
void catchCrashes();
// Call in the child of a fork: it has only the calling thread, with another id.
void forgetOtherThreads();

} // namespace tpk
