// One grid on its way through the threads that run its programs.
#pragma once

#include "float_environment.h"
#include "services.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace tpk {

// A kernel in memory. Of the scratch that each thread offers it, the first `clearedBytes` are zero when the
// thread runs its first programs of a launch.
struct Function {
  KernelEntry entry;
  uint64_t scratchBytes;
  uint64_t clearedBytes;
  bool asserts;           // it may be left by tpk_host_fail or tpk_host_access
  uint64_t argumentBytes; // that a launch must give at least
  std::string name;
  // What a crash report needs:
  uint64_t codeBytes = 0;               // from `entry` on
  int64_t programAt = -1;               // where in its scratch the number of the program stands that it runs
  std::vector<int32_t> pointers;        // where in the arguments those are that are addresses
  std::vector<std::string> explanation; // the command that finds the line in the kernel's source
};

struct Activity;

// Programs [begin, end).
struct Span {
  int64_t begin, end;
};

// Programs that follow one another, from whose front one thread takes some at a time, and others from the
// back.
class alignas(64) Range {
public:
  void fill(Span span);
  // Some of the programs below `limit`, at most `most`; false when there are none.
  bool takeFirst(int64_t limit, int64_t most, Span &taken);
  bool takeLast(int64_t limit, int64_t most, Span &taken);
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
// begun by the thread that is done first: programs that wait for earlier ones of the grid always get what
// they wait for.
//
// Between the programs that a thread takes at a time, the job may be stopped. So they are one at first, and
// more while they are quick: how long a program takes is not known before.
class Job {
public:
  // A thread's part in a job, of the thread that makes it.
  struct Worker {
    // `asks` says whether the thread is that of the caller, who may be interrupted.
    explicit Worker(const Job &job, bool asks = false);

    unsigned range = std::numeric_limits<unsigned>::max(); // its own; none yet
    bool begun = false;                                    // scratch and activity are those of the launch
    const bool asks;
    int64_t most = 1; // programs that it takes at a time
    int64_t now;      // in milliseconds, when it last ended some
    int64_t asked;    // and when it last asked
    void *scratch = nullptr;
    Activity &activity;
    FloatEnvironment environment;
  };

  // What ends a job before its programs have run, but for failures: that the device closes, that the caller
  // is interrupted, or has left the work that it put on a stream, and that time is up.
  enum class Stop : int { None, Closed, Interrupted, Abandoned, TimedOut };
  struct Limits {
    const std::atomic<bool> &closed;
    const std::atomic<bool> *abandoned; // nullptr: the caller waits
    int64_t milliseconds;               // 0: no limit
    Denormals denormals;
  };

  // `width` threads are expected to share the job.
  Job(const Function &function, const void *args, const int32_t (&grid)[3], int64_t total,
      const Limits &limits, unsigned width);
  ~Job();
  Job(const Job &) = delete;
  Job &operator=(const Job &) = delete;

  struct Failure {
    enum Kind { None, Kernel, Assertion, Scratch } kind = None;
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
  Stop stopped() const { return stop_.load(std::memory_order_relaxed); }

private:
  static constexpr unsigned MostRanges = 64; // more threads do not get one of their own

  bool take(Worker &worker, Span &span);
  bool takeFromOthers(Worker &worker, Span &span);
  bool stops();
  void stop(Stop reason);
  void pace(Worker &worker);
  bool begin(Worker &worker);
  void run(const Span &span, Worker &worker);
  void fail(Failure failure);

  const Function &function_;
  const void *args_;
  int32_t grid_[3];
  int64_t total_;
  const Limits limits_;
  const int64_t start_; // in milliseconds
  unsigned count_;      // of ranges
  union {               // so that only the first `count_` are made: a short launch does not pay for more
    Range ranges_[MostRanges];
  };
  alignas(64) std::atomic<unsigned> begun_{0};                      // ranges that have a thread
  std::atomic<int64_t> limit_{std::numeric_limits<int64_t>::max()}; // no programs from here on are taken
  std::atomic<Stop> stop_{Stop::None};
  std::mutex failureMutex_;
  Failure failure_;
};

} // namespace tpk
