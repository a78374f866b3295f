#include "channel.h"
#include "sleeping.h"

#include <bit>
#include <cstring>

namespace vnpu {
namespace {

constexpr int PatienceMilliseconds = 100; // then a waiter looks whether the chip is still there
constexpr int Spins = 200;

} // namespace

uint64_t Channel::submit(uint32_t index, const Command &command, const void *payload, uint64_t size) {
  QueueState &queue = region_.queue(index);
  std::lock_guard lock(producers_[index]);
  uint64_t number = queue.submitted.load(std::memory_order_relaxed);
  if (number >= chip_.config().queue_depth)
    await(index, number - chip_.config().queue_depth + 1);
  chip_.requireAlive();
  Entry &entry = region_.entry(index, number);
  entry.command = command;
  if (size)
    std::memcpy(command.slot == NoSlot ? entry.payload : slot(command.slot), payload, size);
  queue.submitted.store(number + 1);
  if (queue.chipSleeps.load())
    wake(queue.submitted, 1);
  return number + 1;
}

void Channel::await(uint32_t index, uint64_t number) {
  QueueState &queue = region_.queue(index);
  for (int spin = 0; spin < Spins; ++spin) {
    if (queue.completed.load(std::memory_order_acquire) >= number)
      return;
    relax();
  }
  struct Waiting {
    explicit Waiting(std::atomic<uint32_t> &count) : count(count) { count.fetch_add(1); }
    ~Waiting() { count.fetch_sub(1); }
    std::atomic<uint32_t> &count;
  } waiting(queue.waiters);
  for (;;) {
    uint64_t completed = queue.completed.load();
    if (completed >= number)
      return;
    chip_.requireAlive();
    sleepOn(queue.completed, completed, PatienceMilliseconds);
  }
}

std::optional<Error> Channel::takeFailure(uint32_t index) {
  QueueState &queue = region_.queue(index);
  if (!queue.failed.load(std::memory_order_acquire))
    return std::nullopt;
  std::lock_guard lock(failures_);
  if (!queue.failed.load(std::memory_order_acquire))
    return std::nullopt;
  Error failure(vnpu_status(queue.status), std::string(queue.text, strnlen(queue.text, TextBytes)));
  queue.failed.store(0, std::memory_order_release);
  return failure;
}

uint32_t Channel::trySlot() {
  auto &free = region_.header().freeSlots;
  uint64_t slots = free.load(std::memory_order_relaxed);
  // The lowest: those above it are never touched where few are in use.
  while (slots)
    if (free.compare_exchange_weak(slots, slots & (slots - 1), std::memory_order_acquire))
      return uint32_t(std::countr_zero(slots));
  return NoSlot;
}

uint32_t Channel::takeSlot() {
  Header &header = region_.header();
  uint32_t slot = trySlot();
  if (slot != NoSlot)
    return slot;
  header.slotWaiters.fetch_add(1);
  for (;;) {
    uint32_t epoch = header.slotEpoch.load();
    slot = trySlot();
    if (slot != NoSlot || chip_.lost())
      break;
    sleepOn(header.slotEpoch, epoch, PatienceMilliseconds);
  }
  header.slotWaiters.fetch_sub(1);
  if (slot == NoSlot)
    chip_.requireAlive();
  return slot;
}

void Channel::giveSlot(uint32_t slot) {
  Header &header = region_.header();
  header.freeSlots.fetch_or(uint64_t(1) << slot);
  header.slotEpoch.fetch_add(1);
  if (header.slotWaiters.load())
    wake(header.slotEpoch);
}

std::vector<uint8_t> Channel::control(Command command, const void *payload, uint64_t size) {
  std::lock_guard lock(control_);
  command.slot = takeSlot();
  command.size = size;
  // The chip leaves slots of the control queue to the library.
  struct Held {
    Channel &channel;
    uint32_t slot;
    ~Held() { channel.giveSlot(slot); }
  } held{*this, command.slot};
  answer(command.slot) = {};
  await(ControlQueue, submit(ControlQueue, command, payload, size));
  if (auto failure = takeFailure(ControlQueue))
    throw *failure;
  const uint8_t *data = slot(command.slot);
  return {data, data + answer(command.slot).value};
}

} // namespace vnpu
