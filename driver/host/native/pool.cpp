#include "pool.h"
#include "crashes.h"
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

namespace tpk {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto WorkerSpin = std::chrono::microseconds(30);
constexpr auto OwnerSpin = std::chrono::microseconds(100);
constexpr int WakeFanOut = 2;
constexpr unsigned MaximumWidth = 1024;

// Spins until `done()`, for at most `patience`.
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
// Never destroyed: workers outlive static destruction, and a forked child must not use its parent's pool.
std::atomic<Pool *> current{nullptr};

} // namespace

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
  if (child) { // its threads belong to the parent; the next launch creates a new pool
    current.store(nullptr, std::memory_order_relaxed);
    OpenMP::forked();
  }
  instanceMutex.unlock();
}

void Pool::startWorkers() {
  // The interpreter's threads handle signals.
  sigset_t previous;
  const sigset_t blocked = signalsOfInterpreter();
  pthread_sigmask(SIG_SETMASK, &blocked, &previous);
  try {
    for (; workers_ + 1 < width_; ++workers_) {
      std::thread worker([this, thread = workers_ + 1] { serve(thread); });
      pthread_setname_np(worker.native_handle(), "tpk-pool");
      worker.detach();
    }
  } catch (const std::system_error &) {
    // No more threads are available: fewer workers do the same work.
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

void Pool::run(Job &job, bool borrow) {
  Job::Worker caller(job, 0, borrow);
  caller.alone = job.total() == 1 || width_ == 1;
  if (caller.alone)
    return work(job, caller);
  do {
    if (job.left() > 1 && !owned_.exchange(true, std::memory_order_acquire)) {
      share(job, caller, borrow ? OpenMP::ofTorch(width_) : nullptr);
      owned_.store(false, std::memory_order_release);
      return;
    }
  } while (job.step(caller));
}

void Pool::share(Job &job, Job::Worker &caller, const OpenMP *lender) {
  if (lender) {
    struct Shared {
      Job &job;
      Job::Worker &caller;
      const OpenMP &lender;
    } shared{job, caller, *lender};
    lender->run(
        [](void *data) {
          auto &[job, caller, lender] = *static_cast<Shared *>(data);
          const unsigned thread = lender.thread();
          if (!thread)
            return work(job, caller);
          Job::Worker other(job, thread);
          work(job, other);
        },
        &shared, width_);
    return;
  }
  std::call_once(started_, [this] { startWorkers(); });
  publish(job);
  work(job, caller);
  retract();
}

void Pool::work(Job &job, Job::Worker &worker) {
  while (job.step(worker)) {
  }
}

void Pool::publish(Job &job) {
  current_.store(&job);
  epoch_.fetch_add(1);
  // Threads that wake up wake others in turn, so the caller makes at most one system call before it starts to
  // work.
  if (sleepers_.load())
    futexWake(epoch_, int(std::min<int64_t>(WakeFanOut, job.left() - 1)));
}

void Pool::retract() {
  // A worker increments `active_` before it reads `current_`. So once the count is 0 after this store, no
  // worker uses the job. Workers that wake up later find no job.
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

void Pool::serve(unsigned thread) {
  for (uint32_t seen = 0;;) {
    seen = awaitJob(seen);
    active_.fetch_add(1);
    if (Job *job = current_.load()) {
      if (sleepers_.load() && job->left() > 1)
        futexWake(epoch_, WakeFanOut);
      Job::Worker worker(*job, thread);
      work(*job, worker);
    }
    if (active_.fetch_sub(1) == 1 && ownerSleeps_.load())
      futexWake(active_, 1);
  }
}

} // namespace tpk
