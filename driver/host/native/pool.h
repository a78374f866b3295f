// The thread pool that runs the programs of a grid on every core.
#pragma once

#include "job.h"
#include "status.h"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tpk {

class OpenMP;

class Pool {
public:
  // The process's pool. Its width is determined when it is created: TPK_NUM_THREADS, else the cores that this
  // process may use. Throws LaunchError if the variable is not a count.
  static Pool &instance();
  // The number of threads of a grid, including the caller.
  unsigned width() const { return width_; }
  // Runs the job to its end on the calling thread and on the workers. If these are busy with another job, the
  // caller starts alone, and the workers join once they are free. With `borrow`, torch's threads are the
  // workers if there are as many: for callers that may have called torch just before. They poll from time to
  // time for interrupts.
  void run(Job &job, bool borrow);

  static void lockForFork();
  static void unlockAfterFork(bool child);

private:
  explicit Pool(unsigned width, bool oversubscribed) : width_(width), spin_(!oversubscribed) {}
  void startWorkers();
  [[noreturn]] void serve(unsigned thread);
  void share(Job &job, Job::Worker &caller, const OpenMP *lender);
  static void work(Job &job, Job::Worker &worker);
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
