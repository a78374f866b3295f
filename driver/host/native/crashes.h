// Crashes of kernels, put into words before the process ends as it would have.
#pragma once

#include "job.h"

#include <csignal>
#include <sys/types.h>

namespace tpk {

// What one thread runs. Handlers of signals find it by the thread's number.
struct Activity {
  std::atomic<pid_t> thread{0};                    // 0: belongs to nobody
  std::atomic<const Function *> function{nullptr}; // while it runs; then all else is valid
  const void *args;
  const void *scratch;
  int64_t begin, end;
  int32_t grid[3];
  Activity *next;
};

// The calling thread's. The first call gives the thread a stack for signals, unless it has one.
Activity &ownActivity();

// While this lives, the calling thread runs programs of a kernel.
class Running {
public:
  Running(const Function &function, const void *args, const void *scratch, int64_t begin, int64_t end,
          const int32_t (&grid)[3])
      : activity_(ownActivity()) {
    activity_.args = args;
    activity_.scratch = scratch;
    activity_.begin = begin;
    activity_.end = end;
    for (int axis = 0; axis < 3; ++axis)
      activity_.grid[axis] = grid[axis];
    activity_.function.store(&function, std::memory_order_release);
  }
  ~Running() { activity_.function.store(nullptr, std::memory_order_release); }
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;

private:
  Activity &activity_;
};

// What threads of the pool and of streams leave to the interpreter's threads: all signals but those of
// crashes, which end the process at once where they are blocked.
sigset_t signalsOfInterpreter();
// Catches the signals of crashes from now on. Others than those of kernels go to who had them before.
void catchCrashes();
// In the child of a fork: only the calling thread is there, under another number.
void forgetOtherThreads();

} // namespace tpk
