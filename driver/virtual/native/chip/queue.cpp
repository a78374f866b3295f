// A queue: a thread that carries out one ring's commands, one after the other.
#include "chip.h"
#include "cores.h"
#include "dma.h"
#include "loader.h"
#include "sleeping.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace vnpu {

Region region;
std::atomic<bool> hung{false};

void stayIfHung() {
  while (hung.load(std::memory_order_relaxed))
    pause();
}

namespace {

constexpr int Spins = 500;
constexpr int PatienceMilliseconds = 1000;

void awaitCount(std::atomic<uint64_t> &counter, std::atomic<uint32_t> &sleepers, uint64_t number) {
  for (int spin = 0; spin < Spins; ++spin) {
    if (counter.load(std::memory_order_acquire) >= number)
      return;
    relax();
  }
  sleepers.fetch_add(1);
  for (uint64_t seen; (seen = counter.load()) < number;)
    sleepOn(counter, seen, PatienceMilliseconds);
  sleepers.fetch_sub(1);
}

void giveSlot(uint32_t slot) {
  Header &header = region.header();
  header.freeSlots.fetch_or(uint64_t(1) << slot);
  header.slotEpoch.fetch_add(1);
  if (header.slotWaiters.load())
    wake(header.slotEpoch);
}

// An event that has been recorded again meanwhile, on another queue, keeps the newer stamp.
void record(const Command &command) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  EventStamp &stamp = region.event(command.index);
  if (stamp.number.load() > command.value)
    return;
  stamp.nanoseconds.store(uint64_t(tpk_host_nanoseconds()));
  stamp.number.store(command.value);
}

void launch(const Command &command, const void *payload) {
  std::shared_ptr<const Kernel> kernel = Loader::instance().kernel(command.value);
  const int32_t grid[3] = {int32_t(command.grid[0]), int32_t(command.grid[1]), int32_t(command.grid[2])};
  Counters &counters = region.header().counters;
  ++counters.launches;
  if (counters.scratchpadHighWater.load() < kernel->scratchBytes)
    counters.scratchpadHighWater.store(kernel->scratchBytes);
  Cores::instance().run(*kernel, payload, grid);
}

void carryOut(const Command &command, const uint8_t *payload) {
  switch (command.kind) {
  case Kind::CopyIn:
    return copyIn(command, payload);
  case Kind::CopyOut:
    return copyOut(command);
  case Kind::CopyOnDevice:
    return copyOnDevice(command);
  case Kind::Fill:
    return fill(command);
  case Kind::Record:
    return record(command);
  case Kind::Wait: {
    QueueState &other = region.queue(command.index);
    return awaitCount(other.completed, other.waiters, command.value);
  }
  case Kind::Launch:
    return launch(command, payload);
  default:
    return control(command);
  }
}

void fail(QueueState &queue, vnpu_status status, const char *sentence) {
  if (queue.failed.load())
    return;
  queue.status = status;
  std::strncpy(queue.text, sentence, TextBytes - 1);
  queue.failed.store(1, std::memory_order_release);
}

void execute(QueueState &queue, const Command &command, const uint8_t *payload) {
  if (command.misbehaviour == Misbehaviour::Hang)
    hung = true;
  if (command.misbehaviour == Misbehaviour::Die)
    kill(getpid(), SIGKILL);
  stayIfHung();
  if (command.delayMicroseconds)
    usleep(command.delayMicroseconds);
  bool always = command.kind == Kind::Record || command.kind == Kind::Wait;
  if (queue.failed.load() && !always)
    return;
  try {
    carryOut(command, payload);
    region.header().counters.commands += command.counted;
  } catch (const Failure &failure) {
    fail(queue, failure.status, failure.what());
  } catch (const std::bad_alloc &) {
    fail(queue, VNPU_OUT_OF_MEMORY, "the chip's process is out of memory");
  } catch (const std::exception &error) {
    fail(queue, VNPU_LAUNCH_FAILED, error.what());
  }
}

[[noreturn]] void serve(uint32_t index) {
  useAlternateStack();
  QueueState &queue = region.queue(index);
  for (uint64_t number = queue.completed.load();; ++number) {
    awaitCount(queue.submitted, queue.chipSleeps, number + 1);
    const auto &[command, payload] = region.entry(index, number);
    execute(queue, command, command.slot == NoSlot ? payload : region.slot(command.slot));
    // What is read from a slot is read by the library, which gives the slot back.
    if (command.slot != NoSlot && command.kind != Kind::CopyOut && index != ControlQueue)
      giveSlot(command.slot);
    queue.completed.store(number + 1);
    if (queue.waiters.load())
      wake(queue.completed);
  }
}

} // namespace

void serveQueue(uint32_t index) {
  static std::mutex mutex;
  static std::vector<bool> served(QueueCount);
  std::lock_guard lock(mutex);
  if (served[index])
    return;
  try {
    std::thread thread(serve, index);
    pthread_setname_np(thread.native_handle(), "vnpu-queue");
    thread.detach();
  } catch (const std::system_error &error) {
    throw Failure(VNPU_OUT_OF_MEMORY, text("the system gives the chip no thread: ", error.what()));
  }
  served[index] = true;
  auto &count = region.header().servedQueues;
  count = std::max(count.load(), index + 1);
}

} // namespace vnpu
