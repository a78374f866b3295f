// A job: one grid, run by several threads.
#pragma once

#include "float_environment.h"
#include "loss.h"
#include "services.h"
#include "updates.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace tpk {

// A kernel in memory. The first `clearedBytes` of each thread's scratch are zero when the thread runs its
// first programs of a launch.
struct Function {
  KernelEntry entry;
  uint64_t scratchBytes;
  uint64_t clearedBytes;
  bool asserts;           // tpk_host_fail or tpk_host_access may end it
  uint64_t argumentBytes; // least size of the argument block
  bool updates;           // has atomic operations
  int64_t exclusiveAt;    // where in its scratch it is told whether it may update memory without locks, or -1
  int64_t stripesAt;      // where in its scratch it is told the address of the locks of stripes, or -1
  std::string name;
  // What a crash report needs:
  uint64_t codeBytes = 0;               // from `entry` on
  int64_t programAt = -1;               // where in its scratch the number of the running program is stored
  std::vector<int32_t> pointers;        // offsets of pointers in the arguments
  std::vector<std::string> explanation; // the command that finds the line in the kernel's source
};

struct Activity;

// Programs [begin, end).
struct Span {
  int64_t begin, end;
};

// How many programs a thread takes at a time.
struct Pace {
  int64_t most = 1;
  int64_t quick = 1; // these are over so soon that dividing them costs more than a better balance gains
};

// A range of consecutive programs. One thread takes programs from its front, and others from its back.
class alignas(64) Range {
public:
  void fill(Span span);
  // Takes some of the programs below `limit`; false if there are none.
  bool takeFirst(int64_t limit, const Pace &pace, Span &taken);
  bool takeLast(int64_t limit, const Pace &pace, Span &taken);
  // The number of remaining programs. Other threads may take some at any time.
  int64_t left() const;

private:
  std::mutex mutex_; // for changes
  std::atomic<int64_t> begin_{0}, end_{0};
};

// The programs of a grid are divided into as many ranges as there are threads. Each thread owns one range, so
// that consecutive programs share its cache and its scratch: the one of its own number, so that it finds the
// same part of the data there in the next launch. A thread takes a share of the remaining programs at a time:
// a large grid takes few locks, and threads that finish early find programs to take. The first thread that is
// done starts the first range that has no thread yet, so that programs that wait for earlier programs of the
// grid always make progress.
//
// A job can be stopped between the shares that a thread takes. Shares begin with one program, and grow while
// programs are fast, because the duration of a program is not known in advance.
class Job {
public:
  // A thread's part in a job, created by that thread.
  struct Worker {
    // `thread`: its number among those that may run the job, from 0, the caller's. `asks`: it is the
    // caller's, which may be interrupted.
    Worker(const Job &job, unsigned thread, bool asks = false);

    const unsigned thread;
    unsigned range = std::numeric_limits<unsigned>::max(); // its own range; none yet
    bool begun = false;                                    // scratch and activity are set for this launch
    const bool asks;
    bool alone = false; // no other thread runs programs of the job
    Pace pace;
    int64_t now;   // in nanoseconds, at the end of its last programs
    int64_t asked; // when it last polled for interrupts
    void *scratch = nullptr;
    Activity &activity;
    FloatEnvironment environment;
  };

  // What ends a job before all its programs have run, apart from failures: the device closes, the caller is
  // interrupted or has abandoned its work on a stream, the time limit is reached, or a rank of the group is
  // lost.
  enum class Stop : int { None, Closed, Interrupted, Abandoned, TimedOut, Lost };
  struct Limits {
    const std::atomic<bool> &closed;
    const std::atomic<bool> *abandoned; // nullptr: the caller waits
    const Loss &loss;
    int64_t milliseconds; // 0: no limit
    Denormals denormals;
  };

  // `programs`: those of the grid to run. `width` threads are expected to share the job.
  Job(const Function &function, const void *args, const int32_t (&grid)[3], const Span &programs,
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

  // Takes and runs some programs; false if none are left.
  bool step(Worker &worker);
  int64_t left() const;
  int64_t total() const { return total_; }
  // The failure with the lowest program index. Read it when no thread works on the job any more.
  const Failure &failure() const { return failure_; }
  Stop stopped() const { return stop_.load(std::memory_order_relaxed); }

private:
  static constexpr unsigned MostRanges = 64; // bits of `owned_`; further threads do not own a range

  bool own(Worker &worker);
  bool take(Worker &worker, Span &span);
  bool takeFromOthers(Worker &worker, Span &span);
  bool stops();
  void stop(Stop reason);
  void pace(Worker &worker, int64_t programs);
  bool begin(Worker &worker);
  void run(const Span &span, Worker &worker);
  void fail(Failure failure);

  const Function &function_;
  const void *args_;
  int32_t grid_[3];
  int64_t total_;
  const Limits limits_;
  const int64_t start_; // in nanoseconds
  unsigned count_;      // of ranges
  union {               // constructs only the first `count_`: short launches should not pay for more
    Range ranges_[MostRanges];
  };
  alignas(64) std::atomic<uint64_t> owned_{0};                      // a bit for each range that has a thread
  std::atomic<int64_t> limit_{std::numeric_limits<int64_t>::max()}; // programs from here on are not taken
  std::atomic<Stop> stop_{Stop::None};
  std::mutex failureMutex_;
  Failure failure_;
};

} // namespace tpk
