// One grid on its way through the threads that run its programs.
#pragma once

#include "services.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>

namespace tpk {

// A kernel in memory. Of the scratch that each thread offers it, the first `clearedBytes` are zero when the
// thread runs its first programs of a launch.
struct Function {
  KernelEntry entry;
  uint64_t scratchBytes;
  uint64_t clearedBytes;
  bool asserts; // it may call tpk_host_fail
  std::string name;
};

// Programs [begin, end).
struct Span {
  int64_t begin, end;
};

// Programs that follow one another, from whose front one thread takes some at a time, and others from the
// back.
class alignas(64) Range {
public:
  void fill(Span span);
  // Some of the programs below `limit`; false when there are none.
  bool takeFirst(int64_t limit, Span &taken);
  bool takeLast(int64_t limit, Span &taken);
  // How many programs are left, of which others may take some at any time.
  int64_t left() const;

private:
  std::mutex mutex_; // for changes
  std::atomic<int64_t> begin_{0}, end_{0};
};

// The programs of a grid are cut into as many ranges as there are threads. Each thread has one for its own,
// so that programs which follow one another share what lies in its cache and in its scratch, and finds the
// same part of the data there in the next launch. It takes a share of what is left at a time: a large grid
// costs few locks, and those who are done early find something to take. Ranges that nobody has begun are
// begun by who is done first: programs that wait for earlier ones of the grid always get what they wait for.
class Job {
public:
  // A thread's part in a job.
  struct Worker {
    unsigned range = std::numeric_limits<unsigned>::max(); // its own; none yet
    bool begun = false;                                    // its scratch is that of the launch
  };

  // `width` threads are expected to share the job.
  Job(const Function &function, const void *args, const int32_t (&grid)[3], int64_t total,
      const std::atomic<bool> &cancel, unsigned width);
  ~Job();
  Job(const Job &) = delete;
  Job &operator=(const Job &) = delete;

  struct Failure {
    enum Kind { None, Kernel, Assertion, Scratch, Cancelled } kind = None;
    int32_t code = 0;
    int64_t begin = 0, end = 0;
    tpk::Assertion assertion = {};
  };

  // Takes and runs some programs; false when none are left.
  bool step(Worker &worker);
  int64_t left() const;
  int64_t total() const { return total_; }
  // The failure of the lowest programs; to be read when no thread works on the job any more.
  const Failure &failure() const { return failure_; }

private:
  static constexpr unsigned MostRanges = 64; // more threads do not get one of their own

  bool take(Worker &worker, Span &span);
  bool takeFromOthers(Span &span);
  void run(const Span &span, void *memory);
  void fail(Failure failure);

  const Function &function_;
  const void *args_;
  int32_t grid_[3];
  int64_t total_;
  const std::atomic<bool> &cancel_;
  unsigned count_; // of ranges
  union {          // so that only the first `count_` are made: a short launch does not pay for more
    Range ranges_[MostRanges];
  };
  alignas(64) std::atomic<unsigned> begun_{0};                      // ranges that have a thread
  std::atomic<int64_t> limit_{std::numeric_limits<int64_t>::max()}; // no programs from here on are taken
  std::mutex failureMutex_;
  Failure failure_;
};

} // namespace tpk
