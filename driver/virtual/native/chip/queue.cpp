// A queue: a thread that carries out the commands of one ring in order.
#include "chip.h"
#include "cores.h"
#include "dma.h"
#include "group.h"
#include "loader.h"
#include "sleeping.h"

#include "units/processor.h"
#include "units/timeline.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace vnpu {

Region region;
uint64_t memoryOffset = 0;
std::atomic<bool> hung{false};

void stayIfHung() {
  while (hung.load(std::memory_order_relaxed))
    pause();
}

namespace {

constexpr int Spins = 500;
constexpr int PatienceMilliseconds = 200; // then a sleeping thread checks its counter again

uint64_t countOf(const std::atomic<uint64_t> &counter) {
  auto count = countIn(counter.load(std::memory_order_acquire));
  if (!count)
    loseOverwritten("a queue's counter is none");
  return *count;
}

void awaitCount(std::atomic<uint64_t> &counter, std::atomic<uint32_t> &sleepers, uint64_t number) {
  for (int spin = 0; spin < Spins; ++spin) {
    if (countOf(counter) >= number)
      return;
    relax();
  }
  sleepers.fetch_add(1);
  for (uint64_t seen; (seen = countOf(counter)) < number;)
    sleepOn(counter, marked(seen), PatienceMilliseconds);
  sleepers.fetch_sub(1);
}

void tellOfSlot() {
  Header &header = region.header();
  header.slotEpoch.fetch_add(1);
  if (header.slotWaiters.load())
    wake(header.slotEpoch);
}

// An event that was recorded again meanwhile, on another queue, keeps the newer time stamp.
void record(const Command &command, uint32_t queue) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  EventStamp &stamp = region.event(command.index);
  if (stamp.number.load() > command.value)
    return;
  const uint64_t now =
      Processor::instance() ? Timeline::instance().nanoseconds(queue) : uint64_t(tpk_host_nanoseconds());
  stamp.nanoseconds.store(now);
  stamp.number.store(command.value);
  stamp.seal.store((Seal() << command.value << now).value());
}

void launch(const Command &command, const void *payload, uint32_t queue) {
  requireWholeGroup();
  std::shared_ptr<const Kernel> kernel = Loader::instance().kernel(command.value);
  const int32_t grid[3] = {int32_t(command.grid[0]), int32_t(command.grid[1]), int32_t(command.grid[2])};
  Counters &counters = region.header().counters;
  ++counters.launches;
  if (counters.scratchpadHighWater.load() < kernel->scratchBytes)
    counters.scratchpadHighWater.store(kernel->scratchBytes);
  if (Processor *processor = Processor::instance())
    processor->run(*kernel, payload, grid, queue);
  else
    Cores::instance().run(*kernel, payload, grid);
  requireWholeGroup(); // a kernel may have stopped to wait for a chip that is lost
}

void carryOut(const Command &command, const uint8_t *payload, uint32_t queue) {
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
    return record(command, queue);
  case Kind::Wait: {
    QueueState &other = region.queue(command.index);
    awaitCount(other.completed, other.waiters, command.value);
    return;
  }
  case Kind::Gate:
    return awaitGate(command);
  case Kind::Launch:
    return launch(command, payload, queue);
  default:
    return control(command);
  }
}

// The failures of a queue, which the library takes one by one.
class Failures {
public:
  explicit Failures(QueueState &queue) : queue_(queue) {}

  // Whether the library has not yet taken a failure.
  bool pending() {
    const uint64_t seen = queue_.failed.load(std::memory_order_acquire);
    if (seen == (pending_ ? pending_ : taken_))
      return pending_ != 0;
    if (!pending_ || seen != ~pending_)
      loseOverwritten("a queue's failure is none");
    taken_ = seen;
    pending_ = 0;
    return false;
  }
  void add(vnpu_status status, const char *sentence) {
    if (pending())
      return;
    char text[TextBytes] = {};
    std::strncpy(text, sentence, TextBytes - 1);
    queue_.status = status;
    std::memcpy(queue_.text, text, TextBytes);
    pending_ = sealOfFailure(status, text);
    queue_.failed.store(pending_, std::memory_order_release);
  }

private:
  QueueState &queue_;
  uint64_t pending_ = 0, taken_ = 0;
};

void execute(Failures &failures, const Command &command, const uint8_t *payload, uint32_t queue) {
  if (command.misbehaviour == Misbehaviour::Hang)
    hung = true;
  if (command.misbehaviour == Misbehaviour::Die)
    kill(getpid(), SIGKILL);
  stayIfHung();
  if (command.delayMicroseconds)
    usleep(command.delayMicroseconds);
  bool always = command.kind == Kind::Record || waits(command.kind);
  if (failures.pending() && !always)
    return;
  try {
    carryOut(command, payload, queue);
    if (Processor::instance())
      Timeline::instance().pass(queue, command);
    region.header().counters.commands += command.counted;
  } catch (const Failure &failure) {
    failures.add(failure.status, failure.what());
  } catch (const std::bad_alloc &) {
    failures.add(VNPU_OUT_OF_MEMORY, "the chip's process is out of memory");
  } catch (const std::exception &error) {
    failures.add(VNPU_LAUNCH_FAILED, error.what());
  }
}

// A command copied out of its ring, with the argument block of a launch, which kernels read for a long time.
struct Taken {
  Command command;
  const uint8_t *payload;
  std::vector<uint64_t> block;

  void take(uint32_t index, uint64_t number) {
    const Entry &entry = region.entry(index, number);
    command = entry.command;
    const bool inEntry = command.slot == NoSlot;
    if ((!inEntry && command.slot >= SlotCount) || command.payloadBytes > (inEntry ? InlineBytes : SlotBytes))
      loseOverwritten("a command has no place for its payload");
    payload = inEntry ? entry.payload : region.slot(command.slot);
    if (command.kind == Kind::Launch) {
      block.resize((command.payloadBytes + 7) / 8);
      if (command.payloadBytes)
        std::memcpy(block.data(), payload, command.payloadBytes);
      payload = reinterpret_cast<const uint8_t *>(block.data());
    }
    if (sealOf(command, number, payload) != command.seal)
      loseOverwritten("a command is not the one that was submitted");
  }
};

[[noreturn]] void serve(uint32_t index) {
  useAlternateStack();
  QueueState &queue = region.queue(index);
  Failures failures(queue);
  Taken taken;
  for (uint64_t number = 0;; ++number) {
    awaitCount(queue.submitted, queue.chipSleeps, number + 1);
    taken.take(index, number);
    const bool timed = Processor::instance() && index != ControlQueue;
    if (timed)
      Timeline::instance().begin(index, taken.command.kind);
    execute(failures, taken.command, taken.payload, index);
    if (timed)
      Timeline::instance().completed(index, taken.command.kind, number + 1);
    if (queue.completed.load() != marked(number))
      loseOverwritten("a queue's counter is none");
    queue.completed.store(marked(number + 1));
    if (queue.waiters.load())
      wake(queue.completed);
    // The library knows which slot the command used.
    if (taken.command.slot != NoSlot)
      tellOfSlot();
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
