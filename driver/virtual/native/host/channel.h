// Commands to the chip and their completion: rings, staging slots, failures.
#pragma once

#include "chip.h"

#include <array>
#include <optional>
#include <vector>

namespace vnpu {

class Channel {
public:
  explicit Channel(Chip &chip) : chip_(chip), region_(chip.region()) {}

  // Puts a command behind what is on the queue, and waits while the queue is full. Returns its number. The
  // payload is copied, into the command's slot if it has one. Throws DeviceLost.
  uint64_t submit(uint32_t queue, const Command &command, const void *payload = nullptr, uint64_t size = 0);
  uint64_t submitted(uint32_t queue) const { return region_.queue(queue).submitted.load(); }
  bool reached(uint32_t queue, uint64_t number) const {
    return region_.queue(queue).completed.load() >= number;
  }
  // Waits until the queue has completed `number` commands. Throws DeviceLost.
  void await(uint32_t queue, uint64_t number);
  void drain(uint32_t queue) { await(queue, submitted(queue)); }
  // The failure of the queue, if there is one; the queue goes on after it.
  std::optional<Error> takeFailure(uint32_t queue);

  // A staging slot. Waits for one, or returns NoSlot. Throws DeviceLost.
  uint32_t takeSlot();
  uint32_t trySlot();
  void giveSlot(uint32_t slot);
  uint8_t *slot(uint32_t index) const { return region_.slot(index); }
  SlotAnswer &answer(uint32_t slot) const { return region_.header().answers[slot]; }

  // Carries out one command of the control queue and returns its answer. Throws its failure, DeviceLost.
  std::vector<uint8_t> control(Command command, const void *payload = nullptr, uint64_t size = 0);

private:
  Chip &chip_;
  const Region region_;
  std::array<std::mutex, QueueCount> producers_;
  std::mutex failures_;
  std::mutex control_;
};

} // namespace vnpu
