#include "cores.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <thread>

namespace vnpu {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// Chunks of programs grow while they are fast. The watchdog observes chunks; a slow program gets a chunk of
// its own.
constexpr auto QuickChunk = microseconds(250), SlowChunk = microseconds(1000);

} // namespace

uint64_t cpuNanoseconds(pthread_t thread) {
  clockid_t clock;
  timespec time{};
  if (pthread_getcpuclockid(thread, &clock) == 0)
    clock_gettime(clock, &time);
  return uint64_t(time.tv_sec) * 1000000000u + uint64_t(time.tv_nsec);
}

Cores &Cores::instance() {
  static Cores *cores = new Cores; // never destroyed: its threads run until the process ends
  return *cores;
}

void Cores::start(uint32_t count, uint64_t scratchpadBytes) {
  scratchpadBytes_ = scratchpadBytes;
  denormals_ = tpk::requestedDenormals();
  std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < count; ++i) {
    auto core = std::make_unique<Core>();
    void *memory = mmap(nullptr, scratchpadBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw std::runtime_error(text("no ", scratchpadBytes, " bytes for the scratchpad of core ", i));
    core->scratchpad = memory;
    cores_.push_back(std::move(core));
  }
  for (auto &core : cores_) {
    std::thread thread([this, &core = *core] { work(core); });
    pthread_setname_np(thread.native_handle(), "vnpu-core");
    thread.detach();
  }
}

void Cores::run(const Kernel &kernel, const void *args, const int32_t (&grid)[3]) {
  Launch launch(kernel, args, grid);
  auto start = Clock::now();
  {
    std::unique_lock lock(mutex_);
    waiting_.push_back(&launch);
    // Passing a small grid to another thread takes longer than running it.
    Core *own = borrow();
    // Wake all of them: a single woken thread may be that of the lent core, which goes back to sleep.
    if (launch.total > 1)
      arrived_.notify_all();
    if (own) {
      while (launch.next < launch.total)
        runChunk(launch, *own, lock);
      own->lent = false;
      if (!waiting_.empty())
        arrived_.notify_all();
    }
    launch.finished.wait(lock, [&] { return launch.next == launch.total && !launch.running; });
  }
  auto &counters = region.header().counters;
  counters.kernelNanoseconds += uint64_t(std::chrono::nanoseconds(Clock::now() - start).count());
  if (launch.status != VNPU_OK)
    throw Failure(launch.status, launch.failure);
}

// Borrows an idle core, whose own thread keeps sleeping.
Cores::Core *Cores::borrow() {
  for (auto &core : cores_)
    if (!core->lent && !core->running.name) {
      core->lent = true;
      return core.get();
    }
  return nullptr;
}

void Cores::work(Core &core) {
  useAlternateStack();
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [&] { return !waiting_.empty() && !core.lent; });
    Launch &launch = *waiting_[turn_++ % waiting_.size()];
    runChunk(launch, core, lock);
  }
}

void Cores::drop(Launch &launch) {
  launch.next = launch.total;
  std::erase(waiting_, &launch);
}

// Called and left with the lock held; released while programs run.
void Cores::runChunk(Launch &launch, Core &core, std::unique_lock<std::mutex> &lock) {
  int64_t fair = (launch.total - launch.next) / (2 * int64_t(cores_.size())) + 1;
  int64_t begin = launch.next, count = std::min(launch.chunk, fair), end = begin + count;
  launch.next = end;
  if (end == launch.total)
    drop(launch);
  ++launch.running;
  ++core.serial;
  const Kernel &kernel = launch.kernel;
  core.running = {kernel.name.c_str(), begin, end, launch.total};
  core.thread = pthread_self();
  lock.unlock();

  stayIfHung();
  activity = core.running;
  auto start = Clock::now();
  int32_t code = 0;
  if (kernel.clearedBytes)
    std::memset(core.scratchpad, 0, kernel.clearedBytes);
  const tpk::Assertion *assertion;
  {
    tpk::FloatEnvironment environment(denormals_);
    assertion = tpk::callAsserting(kernel.entry, launch.args, kernel.scratchBytes ? core.scratchpad : nullptr,
                                   begin, end, launch.grid, code);
  }
  auto taken = Clock::now() - start;
  activity = {};
  stayIfHung();

  std::string failure;
  if (assertion)
    failure = text("kernel '", kernel.name, "': ", assertion->describe());
  else if (code)
    failure = text("kernel '", kernel.name, "' failed with code ", code, " in programs ", begin, " to ",
                   end - 1, " of ", launch.total);
  lock.lock();
  core.running = {};
  if (taken < QuickChunk && count == launch.chunk)
    launch.chunk *= 2;
  else if (taken > SlowChunk)
    launch.chunk = std::max<int64_t>(1, launch.chunk / 2);
  if (!failure.empty()) {
    // Reports the failure with the lowest program index.
    if (launch.status == VNPU_OK || begin < launch.failedBegin) {
      launch.status = assertion ? VNPU_ASSERTION_FAILED : VNPU_LAUNCH_FAILED;
      launch.failure = failure;
      launch.failedBegin = begin;
    }
    drop(launch);
  }
  auto &counters = region.header().counters;
  counters.programs += uint64_t(count);
  if (!--launch.running && launch.next == launch.total)
    launch.finished.notify_one(); // the launch may be destroyed from here on
}

void Cores::watch(uint32_t milliseconds) {
  std::lock_guard lock(mutex_);
  for (auto &core : cores_) {
    if (!core->running.name)
      continue;
    uint64_t now = cpuNanoseconds(core->thread);
    if (core->seenSerial != core->serial) {
      core->seenSerial = core->serial;
      core->seenNanoseconds = now;
    } else if (milliseconds && now - core->seenNanoseconds > uint64_t(milliseconds) * 1000000u) {
      const Activity &running = core->running;
      lose(text("kernel '", running.name, "' was stopped by the watchdog: programs ", running.begin, " to ",
                running.end - 1, " of ", running.total, " have taken more than ", milliseconds,
                " ms of CPU time; VNPU_WATCHDOG_MS sets the limit")
               .c_str());
    }
  }
}

} // namespace vnpu
