#include "channel.h"
#include "sleeping.h"

#include <bit>
#include <cstring>
#include <unistd.h>

namespace vnpu {
namespace {

constexpr int PatienceMilliseconds = 100; // then a waiting thread checks whether the chip still runs
constexpr int Spins = 200;
constexpr int StampAttempts = 1000;

constexpr uint64_t bit(uint32_t slot) { return uint64_t(1) << slot; }

} // namespace

uint64_t Channel::submit(uint32_t index, Command command, const void *payload, uint64_t size) {
  QueueState &queue = region_.queue(index);
  Own &own = own_[index];
  std::lock_guard lock(own.producer);
  uint64_t number = own.submitted.load(std::memory_order_relaxed);
  if (number >= chip_.config().queue_depth)
    await(index, number - chip_.config().queue_depth + 1);
  chip_.requireAlive();
  command.payloadBytes = uint32_t(size);
  command.seal = sealOf(command, number, payload);
  Entry &entry = region_.entry(index, number);
  entry.command = command;
  if (size)
    std::memcpy(command.slot == NoSlot ? entry.payload : slot(command.slot), payload, size);
  if (command.slot != NoSlot && command.kind != Kind::CopyOut && index != ControlQueue)
    lendSlot(command.slot, index, number + 1);
  own.submitted.store(number + 1);
  queue.submitted.store(marked(number + 1));
  if (queue.chipSleeps.load())
    wake(queue.submitted, 1);
  return number + 1;
}

uint64_t Channel::completed(uint32_t index) {
  Own &own = own_[index];
  uint64_t before = own.completed.load();
  auto now = countIn(region_.queue(index).completed.load(std::memory_order_acquire));
  if (!now || *now < before || *now > own.submitted.load())
    chip_.loseOverwritten(text("what queue ", index, " has completed"));
  while (before < *now && !own.completed.compare_exchange_weak(before, *now)) {
  }
  return *now;
}

void Channel::await(uint32_t index, uint64_t number) {
  QueueState &queue = region_.queue(index);
  for (int spin = 0; spin < Spins; ++spin) {
    if (completed(index) >= number)
      return;
    relax();
  }
  struct Waiting {
    explicit Waiting(std::atomic<uint32_t> &count) : count(count) { count.fetch_add(1); }
    ~Waiting() { count.fetch_sub(1); }
    std::atomic<uint32_t> &count;
  } waiting(queue.waiters);
  for (;;) {
    uint64_t seen = completed(index);
    if (seen >= number)
      return;
    chip_.requireAlive();
    sleepOn(queue.completed, marked(seen), PatienceMilliseconds);
  }
}

std::optional<Error> Channel::takeFailure(uint32_t index) {
  QueueState &queue = region_.queue(index);
  Own &own = own_[index];
  std::lock_guard lock(failures_);
  const uint64_t failed = queue.failed.load(std::memory_order_acquire);
  if (failed == own.takenFailure)
    return std::nullopt;
  char sentence[TextBytes];
  std::memcpy(sentence, queue.text, TextBytes);
  const int32_t status = queue.status;
  if (sealOfFailure(status, sentence) != failed || status <= VNPU_OK || status > VNPU_COPY_FAILED)
    chip_.loseOverwritten(text("how queue ", index, " has failed"));
  own.takenFailure = ~failed;
  queue.failed.store(~failed, std::memory_order_release);
  return Error(vnpu_status(status), std::string(sentence, strnlen(sentence, TextBytes)));
}

uint64_t Channel::eventNanoseconds(uint32_t index, uint64_t number) {
  EventStamp &stamp = region_.event(index);
  // A record on another queue may be writing at this moment.
  for (int attempt = 0; attempt < StampAttempts; ++attempt) {
    const uint64_t seal = stamp.seal.load(), found = stamp.number.load();
    const uint64_t nanoseconds = stamp.nanoseconds.load();
    if (found >= number && (Seal() << found << nanoseconds).value() == seal)
      return nanoseconds;
    usleep(100);
  }
  chip_.loseOverwritten(text("the time of event ", index));
}

// --- staging slots -----------------------------------------------------------------------------------------

// The library alone knows which slots are free. A slot that the chip reads from is free again when the chip
// has completed the command.
uint32_t Channel::trySlot() {
  std::lock_guard lock(slots_);
  for (uint64_t lent = lentSlots_; lent; lent &= lent - 1) {
    const uint32_t slot = uint32_t(std::countr_zero(lent));
    const Loan &loan = loans_[slot];
    if (completed(loan.queue) < loan.number)
      continue;
    lentSlots_ &= ~bit(slot);
    freeSlots_ |= bit(slot);
  }
  if (!freeSlots_)
    return NoSlot;
  // The lowest one, so that higher ones are never touched if few are in use.
  const uint32_t slot = uint32_t(std::countr_zero(freeSlots_));
  freeSlots_ &= ~bit(slot);
  return slot;
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

void Channel::lendSlot(uint32_t slot, uint32_t queue, uint64_t number) {
  std::lock_guard lock(slots_);
  loans_[slot] = {queue, number};
  lentSlots_ |= bit(slot);
}

void Channel::giveSlot(uint32_t slot) {
  {
    std::lock_guard lock(slots_);
    freeSlots_ |= bit(slot);
  }
  Header &header = region_.header();
  header.slotEpoch.fetch_add(1);
  if (header.slotWaiters.load())
    wake(header.slotEpoch);
}

// --- gates -------------------------------------------------------------------------------------------------

std::optional<uint32_t> Channel::takeGate() {
  std::lock_guard lock(gates_);
  for (uint32_t gate = 0; gate < GateCount; ++gate) {
    std::optional<Loan> &loan = gateLoans_[gate];
    if (loan && completed(loan->queue) < loan->number)
      continue;
    loan = Loan{ControlQueue, ~uint64_t(0)}; // until it is lent
    region_.header().gates[gate].store(0);
    return gate;
  }
  return std::nullopt;
}

void Channel::lendGate(uint32_t gate, uint32_t queue, uint64_t number) {
  std::lock_guard lock(gates_);
  gateLoans_[gate] = Loan{queue, number};
}

void Channel::openGate(uint32_t gate, uint64_t seal) {
  std::atomic<uint64_t> &word = region_.header().gates[gate];
  word.store(seal);
  wake(word);
}

bool Channel::takeAnswer(uint32_t slot, SlotAnswer &answer) {
  answer = region_.header().answers[slot];
  if (answer.delivery != Delivery::None && answer.delivery != Delivery::Made)
    chip_.loseOverwritten(text("the answer in slot ", slot));
  return answer.delivery == Delivery::Made;
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
  expectAnswer(command.slot);
  await(ControlQueue, submit(ControlQueue, command, payload, size));
  if (auto failure = takeFailure(ControlQueue))
    throw *failure;
  SlotAnswer answer;
  if (!takeAnswer(command.slot, answer) || answer.bytes > SlotBytes)
    chip_.loseOverwritten("the answer of the control queue");
  const uint8_t *data = slot(command.slot);
  std::vector<uint8_t> found(data, data + answer.bytes);
  if (Seal().add(found.data(), found.size()).value() != answer.sum)
    chip_.loseOverwritten("the answer of the control queue");
  return found;
}

} // namespace vnpu
