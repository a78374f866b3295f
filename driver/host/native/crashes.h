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

  // What the thread's next programs have in common.
  void tell(const void *arguments, const void *memory, const int32_t (&counts)[3]) {
    args = arguments;
    scratch = memory;
    for (int axis = 0; axis < 3; ++axis)
      grid[axis] = counts[axis];
  }
};

// The calling thread's. The first call gives the thread a stack for signals, unless it has one.
Activity &ownActivity();

// While this lives, the thread whose activity it is runs programs of a kernel.
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

// What threads of the pool and of streams leave to the interpreter's threads: all signals but those of
// crashes, which end the process at once where they are blocked.
sigset_t signalsOfInterpreter();
// Catches the signals of crashes from now on. Others than those of kernels go to who had them before.
void catchCrashes();
// In the child of a fork: only the calling thread is there, under another number.
void forgetOtherThreads();

} // namespace tpk
