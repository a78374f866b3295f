#include "dma.h"
#include "checksum.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace vnpu {
namespace {

constexpr uint64_t BounceBytes = 64 << 10;

std::mutex engine;           // which does one piece at a time
uint8_t bounce[BounceBytes]; // its own memory

uint8_t *memory(uint64_t address) { return reinterpret_cast<uint8_t *>(address); }

void spoil(uint8_t *data, uint64_t size) { data[size / 2] ^= 0x10; }

[[noreturn]] void differs(const char *what, uint64_t size, uint64_t target) {
  throw Failure(VNPU_COPY_FAILED, text("a ", what, " went wrong: the ", size, " bytes at ", hex(target),
                                       " did not arrive as they were sent; their checksum differs"));
}

// Moves a piece out of the engine's memory, and compares with what `sent` says.
void deliver(uint64_t target, uint64_t size, Misbehaviour misbehaviour, const Checksum &sent,
             const char *what) {
  if (misbehaviour == Misbehaviour::Corrupt)
    spoil(bounce, size);
  Checksum arrived;
  if (misbehaviour != Misbehaviour::Drop)
    arrived.copy(memory(target), bounce, size);
  if (arrived.value() != sent.value())
    differs(what, size, target);
}

} // namespace

void copyIn(const Command &command, const void *payload) {
  std::lock_guard lock(engine);
  Checksum arrived;
  if (command.misbehaviour != Misbehaviour::Drop)
    arrived.copy(memory(command.target), payload, command.size);
  if (arrived.value() != command.checksum)
    differs("copy to the device", command.size, command.target);
  region.header().counters.bytesToDevice += command.size;
}

void copyOut(const Command &command) {
  std::lock_guard lock(engine);
  uint8_t *slot = region.slot(command.slot);
  Checksum sent;
  if (command.misbehaviour != Misbehaviour::Drop)
    sent.copy(slot, memory(command.source), command.size);
  if (command.misbehaviour == Misbehaviour::Corrupt)
    spoil(slot, command.size);
  region.header().answers[command.slot] = {1, sent.value()};
  region.header().counters.bytesToHost += command.size;
}

void copyOnDevice(const Command &command) {
  Misbehaviour misbehaviour = command.misbehaviour;
  for (uint64_t done = 0, size; done < command.size; done += size) {
    size = std::min(command.size - done, BounceBytes);
    std::lock_guard lock(engine);
    Checksum sent;
    sent.copy(bounce, memory(command.source + done), size);
    deliver(command.target + done, size, misbehaviour, sent, "copy on the device");
  }
  region.header().counters.bytesOnDevice += command.size;
}

void fill(const Command &command) {
  for (uint64_t done = 0, size; done < command.size; done += size) {
    size = std::min(command.size - done, BounceBytes);
    std::lock_guard lock(engine);
    std::memset(bounce, int(command.value), size);
    Checksum sent;
    sent.copy(bounce, bounce, size);
    deliver(command.target + done, size, Misbehaviour::None, sent, "fill");
  }
  region.header().counters.bytesFilled += command.size;
}

} // namespace vnpu
