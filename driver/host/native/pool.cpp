#include "pool.h"
#include "futex.h"
#include "openmp.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <thread>
#include <vector>

namespace tpk {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t ChunksPerThread = 8;
// Programs that follow one another share what a thread has in its cache and in its scratch: so many stay
// together where every thread still gets some chunks.
constexpr int64_t Neighbours = 8;
constexpr int64_t FewestChunks = 2;
constexpr auto WorkerSpin = std::chrono::microseconds(30);
constexpr auto OwnerSpin = std::chrono::microseconds(100);
constexpr int WakeFanOut = 2;
constexpr unsigned MaximumWidth = 1024;

// Memory that a kernel may use while it runs, one piece per thread, kept between launches.
class Scratch {
public:
  ~Scratch() { std::free(data_); }

  // At least `bytes` bytes at a multiple of 64, or nullptr when there is no memory.
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

// Spins until `done()`; gives up after `patience`.
template <typename Done> bool spinUntil(Done done, Clock::duration patience) {
  auto deadline = Clock::now() + patience;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done())
        return true;
      relax();
    }
  } while (Clock::now() < deadline);
  return false;
}

unsigned usableCores() {
  // The kernel's mask may be larger than cpu_set_t on big machines.
  for (size_t cpus = 1024; cpus <= (size_t(1) << 20); cpus *= 2) {
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set)
      break;
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    bool known = sched_getaffinity(0, bytes, set) == 0;
    unsigned count = known ? unsigned(CPU_COUNT_S(bytes, set)) : 0;
    CPU_FREE(set);
    if (known)
      return std::max(count, 1u);
    if (errno != EINVAL)
      break;
  }
  return std::max(std::thread::hardware_concurrency(), 1u);
}

unsigned requestedWidth(unsigned cores) {
  const char *value = std::getenv("TPK_NUM_THREADS");
  if (!value || !*value)
    return std::min(cores, MaximumWidth);
  char *end = nullptr;
  errno = 0;
  long width = std::strtol(value, &end, 10);
  if (errno || *end || width < 1 || width > long(MaximumWidth))
    throw Error(Code::LaunchError,
                text("launch: TPK_NUM_THREADS is '", value, "'; set it to a count of threads from 1 to ",
                     MaximumWidth, ", or unset it to use every core"));
  return unsigned(width);
}

std::mutex instanceMutex;
// Never destroyed: workers outlive static destruction, and a forked child must not touch its parent's pool.
std::atomic<Pool *> current{nullptr};

} // namespace

bool Job::step(unsigned width) {
  int64_t begin = next_.load(std::memory_order_relaxed);
  int64_t end;
  do {
    if (begin >= total_)
      return false;
    int64_t share = (total_ - begin) / width;
    end = begin + std::max<int64_t>({1, share / ChunksPerThread, std::min(share / FewestChunks, Neighbours)});
  } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
  if (cancel_.load(std::memory_order_relaxed)) {
    fail({Failure::Cancelled, 0, begin, end});
    return false;
  }
  void *memory = scratchBytes_ ? scratch.get(scratchBytes_) : nullptr;
  if (scratchBytes_ && !memory) {
    fail({Failure::Scratch, 0, begin, end});
    return true;
  }
  int32_t code = 0;
  const Assertion *failed = nullptr;
  if (asserts_)
    failed = callAsserting(entry_, args_, memory, begin, end, grid_, code);
  else
    code = entry_(args_, memory, begin, end, grid_[0], grid_[1], grid_[2]);
  if (failed)
    fail({Failure::Assertion, 0, begin, end, *failed});
  else if (code)
    fail({Failure::Kernel, code, begin, end});
  return true;
}

void Job::fail(Failure failure) {
  next_.store(total_, std::memory_order_relaxed);
  std::lock_guard lock(failureMutex_);
  if (failure_.kind == Failure::None || failure.begin < failure_.begin)
    failure_ = failure;
}

Pool &Pool::instance() {
  if (Pool *pool = current.load(std::memory_order_acquire))
    return *pool;
  std::lock_guard lock(instanceMutex);
  if (!current.load(std::memory_order_relaxed)) {
    unsigned cores = usableCores();
    unsigned width = requestedWidth(cores);
    current.store(new Pool(width, width > cores), std::memory_order_release);
  }
  return *current.load(std::memory_order_relaxed);
}

void Pool::lockForFork() { instanceMutex.lock(); }

void Pool::unlockAfterFork(bool child) {
  if (child) { // its threads are the parent's; the next launch makes a new one
    current.store(nullptr, std::memory_order_relaxed);
    OpenMP::forked();
  }
  instanceMutex.unlock();
}

void Pool::startWorkers() {
  // Signals are for the interpreter's threads.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  try {
    for (; workers_ + 1 < width_; ++workers_) {
      std::thread worker([this] { serve(); });
      pthread_setname_np(worker.native_handle(), "tpk-pool");
      worker.detach();
    }
  } catch (const std::system_error &) {
    // No more threads to be had: fewer workers do the same work.
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

void Pool::run(Job &job, bool borrow) {
  if (job.total() == 1 || width_ == 1)
    return work(job, 1);
  do {
    if (job.left() > 1 && !owned_.exchange(true, std::memory_order_acquire)) {
      share(job, borrow ? OpenMP::ofTorch(width_) : nullptr);
      owned_.store(false, std::memory_order_release);
      return;
    }
  } while (job.step(width_));
}

void Pool::share(Job &job, const OpenMP *lender) {
  if (lender) {
    struct Shared {
      Job &job;
      unsigned width;
    } shared{job, width_};
    lender->run(
        [](void *data) {
          auto &[job, width] = *static_cast<Shared *>(data);
          work(job, width);
        },
        &shared, width_);
    return;
  }
  std::call_once(started_, [this] { startWorkers(); });
  publish(job);
  work(job, width_);
  retract();
}

void Pool::work(Job &job, unsigned width) {
  while (job.step(width)) {
  }
}

void Pool::publish(Job &job) {
  current_.store(&job);
  epoch_.fetch_add(1);
  // Whoever wakes up wakes others in turn, so the caller gets to work after one system call at most.
  if (sleepers_.load())
    futexWake(epoch_, int(std::min<int64_t>(WakeFanOut, job.left() - 1)));
}

void Pool::retract() {
  // A worker counts itself in `active_` before it reads `current_`, so once the count is 0 after this store
  // nobody holds the job. Workers that wake up late find nothing.
  current_.store(nullptr);
  if (!spinUntil([this] { return active_.load() == 0; }, spin_ ? OwnerSpin : Clock::duration::zero())) {
    ownerSleeps_.store(true);
    while (uint32_t active = active_.load())
      futexWait(active_, active);
    ownerSleeps_.store(false);
  }
}

uint32_t Pool::awaitJob(uint32_t seen) {
  if (!spin_ || !spinUntil([&] { return epoch_.load(std::memory_order_relaxed) != seen; }, WorkerSpin)) {
    sleepers_.fetch_add(1);
    while (epoch_.load() == seen)
      futexWait(epoch_, seen);
    sleepers_.fetch_sub(1);
  }
  return epoch_.load();
}

void Pool::serve() {
  for (uint32_t seen = 0;;) {
    seen = awaitJob(seen);
    active_.fetch_add(1);
    if (Job *job = current_.load()) {
      if (sleepers_.load() && job->left() > 1)
        futexWake(epoch_, WakeFanOut);
      work(*job, width_);
    }
    if (active_.fetch_sub(1) == 1 && ownerSleeps_.load())
      futexWake(active_, 1);
  }
}

} // namespace tpk
