#include "job.h"
#include "crashes.h"
#include "interrupts.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

namespace tpk {
namespace {

constexpr int64_t Shares = 8;
constexpr int64_t Microsecond = 1000, Millisecond = 1000 * Microsecond;

// Programs that take less are not divided: to take a share, a thread needs a tenth of a microsecond, and
// several where other threads take from the same ranges.
constexpr int64_t Brief = 4 * Microsecond;

// If the programs taken at a time took at most Quick, the thread takes Growth times as many next time; if
// more than Slow, fewer. So they take a tenth of a second, unless a single program takes longer.
constexpr int64_t Growth = 8, Quick = 8 * Millisecond, Slow = 40 * Millisecond;

// How many of the remaining programs of a range to take at a time.
int64_t share(int64_t left, const Pace &pace) {
  return std::min(pace.most, std::max<int64_t>({1, left / Shares, std::min(left, pace.quick)}));
}

int64_t nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000 * Millisecond + time.tv_nsec;
}

// Memory that kernels use while they run, one piece per thread, kept between launches.
class Scratch {
public:
  ~Scratch() { std::free(data_); }

  // At least `bytes` bytes at a multiple of 64; nullptr if there is no memory.
  void *get(uint64_t bytes) {
    if (bytes <= size_)
      return data_;
    std::free(data_);
    size_ = (bytes + 63) / 64 * 64;
    data_ = std::aligned_alloc(64, size_);
    if (!data_)
      size_ = 0;
    return data_;
  }

private:
  void *data_ = nullptr;
  uint64_t size_ = 0;
};

thread_local Scratch scratch;

} // namespace

void Range::fill(Span span) {
  begin_.store(span.begin, std::memory_order_relaxed);
  end_.store(span.end, std::memory_order_relaxed);
}

int64_t Range::left() const {
  return end_.load(std::memory_order_relaxed) - begin_.load(std::memory_order_relaxed);
}

bool Range::takeFirst(int64_t limit, const Pace &pace, Span &taken) {
  std::lock_guard lock(mutex_);
  int64_t begin = begin_.load(std::memory_order_relaxed);
  int64_t end = std::min(end_.load(std::memory_order_relaxed), limit);
  if (begin >= end)
    return false;
  taken = {begin, begin + share(end - begin, pace)};
  begin_.store(taken.end, std::memory_order_relaxed);
  return true;
}

bool Range::takeLast(int64_t limit, const Pace &pace, Span &taken) {
  std::lock_guard lock(mutex_);
  int64_t begin = begin_.load(std::memory_order_relaxed);
  int64_t end = std::max(begin, std::min(end_.load(std::memory_order_relaxed), limit));
  taken = {end - (begin < end ? share(end - begin, pace) : 0), end};
  end_.store(taken.begin, std::memory_order_relaxed);
  return begin < end;
}

// The caller's time starts at the job's creation.
Job::Worker::Worker(const Job &job, unsigned thread, bool asks)
    : thread(thread), asks(asks), now(asks ? job.start_ : nanoseconds()), asked(now), activity(ownActivity()),
      environment(job.limits_.denormals) {}

Job::Job(const Function &function, const void *args, const int32_t (&grid)[3], const Span &programs,
         const Limits &limits, unsigned width)
    : function_(function), args_(args), grid_{grid[0], grid[1], grid[2]},
      total_(programs.end - programs.begin), limits_(limits), start_(nanoseconds()),
      count_(unsigned(std::min<int64_t>({total_, width, MostRanges}))) {
  // The quotient and the remainder separately: the product of the total and an index could overflow.
  int64_t each = total_ / count_, rest = total_ % count_;
  auto start = [=](int64_t index) { return programs.begin + index * each + std::min(index, rest); };
  std::uninitialized_default_construct_n(ranges_, count_);
  for (unsigned i = 0; i < count_; ++i)
    ranges_[i].fill({start(i), start(i + 1)});
}

Job::~Job() { std::destroy_n(ranges_, count_); }

int64_t Job::left() const {
  int64_t sum = 0;
  for (unsigned i = 0; i < count_; ++i)
    sum += ranges_[i].left();
  return sum;
}

// Makes the thread the owner of a range that has none; false if there are none.
bool Job::own(Worker &worker) {
  const bool first = worker.range >= MostRanges;
  for (uint64_t owned = owned_.load(std::memory_order_relaxed);;) {
    unsigned range = unsigned(std::countr_one(owned));
    if (first && worker.thread < count_ && !(owned >> worker.thread & 1))
      range = worker.thread;
    if (range >= count_)
      return false;
    if (owned_.compare_exchange_weak(owned, owned | uint64_t(1) << range, std::memory_order_relaxed)) {
      worker.range = range;
      return true;
    }
  }
}

bool Job::take(Worker &worker, Span &span) {
  int64_t limit = limit_.load(std::memory_order_relaxed);
  while (worker.range >= count_ || !ranges_[worker.range].takeFirst(limit, worker.pace, span))
    if (!own(worker))
      return takeFromOthers(worker, span);
  return true;
}

bool Job::takeFromOthers(Worker &worker, Span &span) {
  auto less = [](const Range &a, const Range &b) { return a.left() < b.left(); };
  for (;;) {
    Range &fullest = *std::max_element(ranges_, ranges_ + count_, less);
    if (fullest.left() <= 0)
      return false;
    if (fullest.takeLast(limit_.load(std::memory_order_relaxed), worker.pace, span))
      return true;
  }
}

bool Job::step(Worker &worker) {
  Span span;
  if (stops() || !take(worker, span))
    return false;
  if (!worker.begun && !begin(worker)) {
    fail({Failure::Scratch, 0, span.begin, span.end});
    return true;
  }
  run(span, worker);
  if (total_ > 1)
    pace(worker, span.end - span.begin);
  return true;
}

// Prepares a thread for all programs that it will run. False if there is no memory for scratch.
bool Job::begin(Worker &worker) {
  if (function_.scratchBytes) {
    worker.scratch = scratch.get(function_.scratchBytes);
    if (!worker.scratch)
      return false;
    if (function_.clearedBytes)
      std::memset(worker.scratch, 0, function_.clearedBytes);
  }
  worker.activity.tell(args_, worker.scratch, grid_);
  worker.begun = true;
  return true;
}

bool Job::stops() {
  if (limits_.closed.load(std::memory_order_relaxed))
    stop(Stop::Closed);
  else if (limits_.abandoned && limits_.abandoned->load(std::memory_order_relaxed))
    stop(Stop::Abandoned);
  else if (limits_.loss.happened())
    stop(Stop::Lost);
  return stopped() != Stop::None;
}

void Job::stop(Stop reason) {
  Stop none = Stop::None;
  stop_.compare_exchange_strong(none, reason, std::memory_order_relaxed);
}

// Checks the time after some programs, and adapts how many to take.
void Job::pace(Worker &worker, int64_t programs) {
  const int64_t before = worker.now;
  worker.now = nanoseconds();
  const int64_t taken = worker.now - before;
  int64_t &most = worker.pace.most;
  worker.pace.quick = programs * Brief / std::max<int64_t>(taken, 1);
  if (taken <= Quick)
    most = most < total_ / Growth ? most * Growth : total_;
  else if (taken > Slow)
    most = std::max<int64_t>(1, most / Growth);
  if (limits_.milliseconds && worker.now - start_ > limits_.milliseconds * Millisecond)
    stop(Stop::TimedOut);
  if (worker.asks && worker.now - worker.asked > InterruptMilliseconds * Millisecond) {
    if (interrupted()) // takes precedence: an exception is set, which the caller must raise
      stop_.store(Stop::Interrupted, std::memory_order_relaxed);
    // The interrupt poll may have launched kernels on this thread, with its scratch and its activity.
    worker.begun = false;
    worker.now = worker.asked = nanoseconds();
  }
}

void Job::run(const Span &span, Worker &worker) {
  auto [begin, end] = span;
  void *memory = worker.scratch;
  const Running running(worker.activity, function_, begin, end);
  int32_t code = 0;
  const Assertion *failed = nullptr;
  // A kernel that is left by a long jump would keep a lock.
  const Updates updates(function_.updates, function_.exclusiveAt >= 0 && worker.alone,
                        function_.stripesAt >= 0 && !function_.asserts);
  auto tell = [&](int64_t at, int64_t told) {
    if (at >= 0)
      std::memcpy(static_cast<char *>(memory) + at, &told, sizeof told);
  };
  tell(function_.exclusiveAt, updates.exclusive());
  tell(function_.stripesAt, updates.locks());
  if (function_.asserts)
    failed = callAsserting(function_.entry, args_, memory, begin, end, grid_, code);
  else
    code = function_.entry(args_, memory, begin, end, grid_[0], grid_[1], grid_[2]);
  if (failed)
    fail({Failure::Assertion, 0, begin, end, *failed});
  else if (code)
    fail({Failure::Kernel, code, begin, end});
}

void Job::fail(Failure failure) {
  std::lock_guard lock(failureMutex_);
  if (failure_.kind != Failure::None && failure.begin >= failure_.begin)
    return;
  failure_ = failure;
  // Programs before the failed one still run and may fail, too. The failure with the lowest program index is
  // reported.
  limit_.store(failure.begin, std::memory_order_relaxed);
}

} // namespace tpk
