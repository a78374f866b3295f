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
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace vnpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int TickMilliseconds = 100;
// Ticks, not a clock: when the whole machine was suspended, no ticks were counted either.
constexpr int SilentTicks = 25;
constexpr int StartTicks = 300;

std::string textIn(const char (&bytes)[TextBytes]) { return std::string(bytes, strnlen(bytes, TextBytes)); }

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
  int made = memfd_create("vnpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Its number must not be one of those that the chip's process gets.
  descriptor_ = made < 0 ? made : fcntl(made, F_DUPFD_CLOEXEC, 10);
  if (made >= 0)
    close(made);
  // If the chip truncated the region, reading it would end this program.
  constexpr int SizeStays = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (descriptor_ < 0 || ftruncate(descriptor_, off_t(bytes_)) ||
      fcntl(descriptor_, F_ADD_SEALS, SizeStays)) {
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
  static_assert(sizeof config_.description == DescriptionBytes);
  std::memcpy(header.description, config_.description, DescriptionBytes);
  region_.open(DefaultQueue);
  region_.open(ControlQueue);
}

void Chip::startWatcher() {
  // The program's own threads handle signals.
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
  if (start == Start::Ready) {
    ready_ = true;
    return;
  }
  // The destructor of an object whose constructor throws does not run.
  stop("it did not start");
  std::string why = start == Start::Failed ? textIn(header.startText) : reason_;
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

void Chip::loseOverwritten(const std::string &what) {
  {
    std::lock_guard guard(reasonMutex_);
    if (overwritten_.empty())
      overwritten_ = "the memory that it shares with the library was overwritten, as by a kernel that writes "
                     "out of bounds: " +
                     what;
  }
  stop("it was stopped");
  throwLost();
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
    // On systems without process handles, the end of the pipe is taken for the end of the process.
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
    reason = !own.empty()            ? own
             : !overwritten_.empty() ? overwritten_
             : !killedFor_.empty()   ? killedFor_
                                     : ending;
  }
  lose(reason);
}

// Forwards the available output; false at the end of the pipe.
bool Chip::forward() {
  char buffer[65536];
  struct Forwarding {
    explicit Forwarding(std::atomic<bool> &flag) : flag(flag) { flag.store(true); }
    ~Forwarding() { flag.store(false); }
    std::atomic<bool> &flag;
  } forwarding(forwarding_);
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
  if (heartbeat != seenHeartbeat_ || !ready_) { // before the first one, the time limit of the start applies
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
  char copy[TextBytes];
  std::memcpy(copy, header.lostText, TextBytes);
  return Seal().add(copy, TextBytes).value() == header.lostSeal ? textIn(copy) : "";
}

void Chip::lose(const std::string &reason) {
  {
    std::lock_guard guard(reasonMutex_);
    reason_ = reason;
  }
  lost_.store(true, std::memory_order_release);
  // Wakes threads that wait for the chip, so that they check again.
  Header &header = region_.header();
  for (uint32_t index = 0; index < std::min(header.servedQueues.load(), QueueCount); ++index)
    if (region_.queue(index).waiters.load())
      wake(region_.queue(index).completed);
  wake(header.slotEpoch);
  wake(header.start);
  wake(forwarded_);
}

// The chip's count of printed bytes only says when to check. The pipe is authoritative.
bool Chip::outputIsForwarded() const {
  int waiting = 0;
  return ioctl(process_.output(), FIONREAD, &waiting) != 0 || (!waiting && !forwarding_.load());
}

void Chip::awaitPrinted() {
  uint64_t printed = region_.header().printedBytes.load(std::memory_order_acquire);
  for (;;) {
    uint64_t seen = forwarded_.load(std::memory_order_acquire);
    if (seen >= printed || lost() || outputIsForwarded())
      return;
    sleepOn(forwarded_, seen, TickMilliseconds);
  }
}

} // namespace vnpu
