#include "chip.h"
#include "sleeping.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace vnpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int TickMilliseconds = 100;
// Ticks and not a clock: a machine that stood still altogether has not counted them either.
constexpr int SilentTicks = 25;
constexpr int StartTicks = 300;

} // namespace

Chip::Chip(const vnpu_config &config, const Range &range) : config_(config) {
  share(range);
  try {
    process_.start(config.chip_path, descriptor_);
    startWatcher();
  } catch (...) {
    munmap(start_, bytes_);
    close(descriptor_);
    throw;
  }
  close(descriptor_);
  awaitStart();
}

Chip::~Chip() {
  stop("it was closed");
  munmap(start_, bytes_);
}

void Chip::share(const Range &range) {
  bytes_ = Region::bytes(config_.queue_depth);
  int made = memfd_create("vnpu", MFD_CLOEXEC);
  // Its number is none of those that the chip's process is given.
  descriptor_ = made < 0 ? made : fcntl(made, F_DUPFD_CLOEXEC, 10);
  if (made >= 0)
    close(made);
  if (descriptor_ < 0 || ftruncate(descriptor_, off_t(bytes_))) {
    int error = errno;
    if (descriptor_ >= 0)
      close(descriptor_);
    throw Error(VNPU_OUT_OF_MEMORY,
                text("vnpu: no shared memory for the chip's queues: ", std::strerror(error)));
  }
  start_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (start_ == MAP_FAILED) {
    int error = errno;
    close(descriptor_);
    throw Error(VNPU_OUT_OF_MEMORY, text("vnpu: no room for ", bytes_, " bytes of queues: ",
                                         std::strerror(error), "; make VNPU_QUEUE_DEPTH smaller"));
  }
  region_ = Region(start_, config_.queue_depth);
  Header &header = region_.header();
  header.version = ProtocolVersion;
  header.hostProcess = getpid();
  header.regionBytes = bytes_;
  header.rangeStart = range.start();
  header.rangeBytes = range.bytes();
  header.scratchpadBytes = config_.scratchpad_bytes;
  header.cores = config_.cores;
  header.queueDepth = config_.queue_depth;
  header.watchdogMilliseconds = config_.watchdog_ms;
  header.freeSlots = ~uint64_t(0);
}

void Chip::startWatcher() {
  // Signals are for the program's own threads.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error &error) {
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    process_.kill();
    process_.reap();
    throw Error(VNPU_DEVICE_LOST, text("vnpu: the system gives no thread to watch the chip: ", error.what()));
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  pthread_setname_np(watcher_.native_handle(), "vnpu-watch");
}

void Chip::awaitStart() {
  Header &header = region_.header();
  for (int ticks = 0; header.start == Start::Pending && !lost(); ++ticks) {
    if (ticks == StartTicks)
      stop("it did not get ready");
    sleepOn(header.start, Start::Pending, TickMilliseconds);
  }
  Start start = header.start;
  if (start == Start::Ready)
    return;
  // The destructor of what was not constructed will not run.
  stop("it did not start");
  std::string why = start == Start::Failed ? header.startText : reason_;
  munmap(start_, bytes_);
  if (start == Start::RangeTaken)
    throw RangeTaken();
  throw Error(VNPU_DEVICE_LOST, text("vnpu: the chip '", config_.chip_path, "' did not start: ", why));
}

void Chip::stop(const std::string &reason) {
  std::lock_guard lock(stopping_);
  if (!watcher_.joinable())
    return;
  {
    std::lock_guard guard(reasonMutex_);
    if (killedFor_.empty())
      killedFor_ = reason;
  }
  if (!ended_)
    process_.kill();
  watcher_.join();
}

void Chip::throwLost() const {
  std::lock_guard guard(reasonMutex_);
  throw Error(VNPU_DEVICE_LOST, text("the chip is lost: ", reason_, "; vnpu_reset brings a fresh one"));
}

// --- the watcher's thread ---------------------------------------------------------------------------------

void Chip::watch() {
  pollfd events[] = {{process_.output(), POLLIN, 0}, {process_.handle(), POLLIN, 0}};
  for (auto tick = Clock::now();;) {
    poll(events, 2, TickMilliseconds);
    bool open = forward();
    // Where the system has no handles of processes, the end of the pipe is the end of the process.
    bool ended = process_.handle() >= 0 ? events[1].revents != 0 : !open;
    if (ended)
      break;
    if (!open)
      events[0].fd = -1; // a kernel has closed it
    if (Clock::now() - tick < std::chrono::milliseconds(TickMilliseconds))
      continue;
    tick = Clock::now();
    if (looksDead()) {
      {
        std::lock_guard guard(reasonMutex_);
        if (killedFor_.empty())
          killedFor_ = "it hangs: no heartbeat";
      }
      process_.kill();
    }
  }
  std::string ending = process_.reap();
  ended_ = true;
  forward();
  std::string own = ownReason();
  std::string reason;
  {
    std::lock_guard guard(reasonMutex_);
    reason = !own.empty() ? own : !killedFor_.empty() ? killedFor_ : ending;
  }
  lose(reason);
}

// Passes on what is there; false at the end of the pipe.
bool Chip::forward() {
  char buffer[65536];
  for (;;) {
    ssize_t count = read(process_.output(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count < 0 && errno == EAGAIN;
    std::fwrite(buffer, 1, size_t(count), stdout);
    std::fflush(stdout);
    forwarded_.fetch_add(uint64_t(count), std::memory_order_release);
    wake(forwarded_);
  }
}

bool Chip::looksDead() {
  uint64_t heartbeat = region_.header().heartbeat.load(std::memory_order_relaxed);
  if (heartbeat != seenHeartbeat_ || !heartbeat) { // before the first one, the start's own time limit holds
    seenHeartbeat_ = heartbeat;
    silentTicks_ = 0;
    return false;
  }
  return ++silentTicks_ > SilentTicks && !process_.traced();
}

std::string Chip::ownReason() const {
  const Header &header = region_.header();
  if (header.lost.load(std::memory_order_acquire) != 2)
    return "";
  return std::string(header.lostText, strnlen(header.lostText, TextBytes));
}

void Chip::lose(const std::string &reason) {
  {
    std::lock_guard guard(reasonMutex_);
    reason_ = reason;
  }
  lost_.store(true, std::memory_order_release);
  // Whoever waits for the chip looks again.
  Header &header = region_.header();
  for (uint32_t index = 0; index < std::min(header.servedQueues.load(), QueueCount); ++index)
    if (region_.queue(index).waiters.load())
      wake(region_.queue(index).completed);
  wake(header.slotEpoch);
  wake(header.start);
  wake(forwarded_);
}

void Chip::awaitPrinted() {
  uint64_t printed = region_.header().printedBytes.load(std::memory_order_acquire);
  for (;;) {
    uint64_t seen = forwarded_.load(std::memory_order_acquire);
    if (seen >= printed || lost())
      return;
    sleepOn(forwarded_, seen, TickMilliseconds);
  }
}

} // namespace vnpu
