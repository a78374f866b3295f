// Commands to the chip and their completion: rings, staging slots, failures.
#pragma once

#include "chip.h"

#include <array>
#include <optional>
#include <vector>

namespace vnpu {

// Does not trust the region: if data there are not what the chip writes, every member ends the chip and
// throws DeviceLost.
class Channel {
public:
  explicit Channel(Chip &chip) : chip_(chip), region_(chip.region()) {}

  // Appends a command to the queue, and waits while the queue is full. Returns its number. The payload is
  // copied, into the command's slot if it has one. Throws DeviceLost.
  uint64_t submit(uint32_t queue, Command command, const void *payload = nullptr, uint64_t size = 0);
  uint64_t submitted(uint32_t queue) const { return own_[queue].submitted.load(); }
  bool reached(uint32_t queue, uint64_t number) { return completed(queue) >= number; }
  // Waits until the queue has completed `number` commands. Throws DeviceLost.
  void await(uint32_t queue, uint64_t number);
  void drain(uint32_t queue) { await(queue, submitted(queue)); }
  // The failure of the queue, if there is one. The queue continues after it.
  std::optional<Error> takeFailure(uint32_t queue);
  // The time stamp of an event whose record `number` has been reached.
  uint64_t eventNanoseconds(uint32_t index, uint64_t number);

  // Takes a staging slot. Waits for one, or returns NoSlot. Throws DeviceLost.
  uint32_t takeSlot();
  uint32_t trySlot();
  void giveSlot(uint32_t slot);
  uint8_t *slot(uint32_t index) const { return region_.slot(index); }
  // Call this before a command that writes an answer to a slot.
  void expectAnswer(uint32_t slot) { region_.header().answers[slot] = {}; }
  // Whether the command was not dropped; then `answer` is its answer.
  bool takeAnswer(uint32_t slot, SlotAnswer &answer);

  // Gates at which queues wait for other chips. Nothing if all are in use.
  std::optional<uint32_t> takeGate();
  // The queue has passed the gate when it has completed `number` commands.
  void lendGate(uint32_t gate, uint32_t queue, uint64_t number);
  void openGate(uint32_t gate, uint64_t seal);

  // Carries out one command of the control queue and returns its answer. Throws its failure, and DeviceLost.
  std::vector<uint8_t> control(Command command, const void *payload = nullptr, uint64_t size = 0);

private:
  // The library's own state of a queue, which is not in the region.
  struct Own {
    std::mutex producer;
    std::atomic<uint64_t> submitted{0};
    std::atomic<uint64_t> completed{0}; // at least
    uint64_t takenFailure = 0;          // replaces the failure once it is taken
  };
  // When the chip stops using a slot.
  struct Loan {
    uint32_t queue;
    uint64_t number;
  };

  uint64_t completed(uint32_t queue);
  void lendSlot(uint32_t slot, uint32_t queue, uint64_t number);

  Chip &chip_;
  const Region region_;
  std::array<Own, QueueCount> own_;
  std::mutex failures_;
  std::mutex control_;
  std::mutex slots_; // for what follows
  uint64_t freeSlots_ = ~uint64_t(0), lentSlots_ = 0;
  std::array<Loan, SlotCount> loans_;
  std::mutex gates_; // for what follows
  std::array<std::optional<Loan>, GateCount> gateLoans_;
};

} // namespace vnpu
