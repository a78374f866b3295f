// The thread pool that runs the programs of a grid on every core.
#pragma once

#include "services.h"
#include "status.h"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tpk {

// One grid on its way through the pool. Threads take chunks of consecutive programs from `next`. A chunk is a
// share of what is left, or some neighbours, so that a large grid costs few atomic operations and its tail is
// still spread program by program.
class Job {
public:
  // `asserts`: the kernel may call tpk_host_fail.
  Job(KernelEntry entry, bool asserts, const void *args, uint64_t scratchBytes, const int32_t (&grid)[3],
      int64_t total, const std::atomic<bool> &cancel)
      : entry_(entry), asserts_(asserts), args_(args), scratchBytes_(scratchBytes),
        grid_{grid[0], grid[1], grid[2]}, total_(total), cancel_(cancel) {}

  struct Failure {
    enum Kind { None, Kernel, Assertion, Scratch, Cancelled } kind = None;
    int32_t code = 0;
    int64_t begin = 0, end = 0;
    tpk::Assertion assertion = {};
  };

  // Takes and runs one chunk; false when none is left. `width` threads are expected to share the job.
  bool step(unsigned width);
  int64_t left() const { return total_ - next_.load(std::memory_order_relaxed); }
  int64_t total() const { return total_; }
  // The failure of the lowest programs; to be read when no thread works on the job any more.
  const Failure &failure() const { return failure_; }

private:
  void fail(Failure failure);

  KernelEntry entry_;
  bool asserts_;
  const void *args_;
  uint64_t scratchBytes_;
  int32_t grid_[3];
  int64_t total_;
  const std::atomic<bool> &cancel_;
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::mutex failureMutex_;
  Failure failure_;
};

class OpenMP;

class Pool {
public:
  // The process's pool. Its width is read here, when it is made: TPK_NUM_THREADS, else the cores that this
  // process may use. Throws LaunchError when the variable is not a count.
  static Pool &instance();
  // Threads that take part in a grid, the caller included.
  unsigned width() const { return width_; }
  // Runs the job to its end on the calling thread and, unless they are busy with another job, the workers.
  // A job that finds them busy starts on its own and takes them over once they are free. With `borrow`,
  // torch's threads are the workers where it has as many: for callers that may have called torch just before.
  void run(Job &job, bool borrow);

  static void lockForFork();
  static void unlockAfterFork(bool child);

private:
  explicit Pool(unsigned width, bool oversubscribed) : width_(width), spin_(!oversubscribed) {}
  void startWorkers();
  [[noreturn]] void serve();
  void share(Job &job, const OpenMP *lender);
  static void work(Job &job, unsigned width);
  uint32_t awaitJob(uint32_t seen);
  void publish(Job &job);
  void retract();

  const unsigned width_;
  const bool spin_;
  std::once_flag started_;
  unsigned workers_ = 0;
  alignas(64) std::atomic<bool> owned_{false};
  alignas(64) std::atomic<uint32_t> epoch_{0}; // changes with every published job; workers sleep on it
  std::atomic<uint32_t> sleepers_{0};
  alignas(64) std::atomic<Job *> current_{nullptr};
  alignas(64) std::atomic<uint32_t> active_{0}; // workers that may hold `current_`; its owner sleeps on it
  std::atomic<bool> ownerSleeps_{false};
};

} // namespace tpk
