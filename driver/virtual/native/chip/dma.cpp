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

void spoil(uint8_t *data, uint64_t size) { data[size / 2] ^= 0x10; }

[[noreturn]] void differs(const char *what, uint64_t size, uint64_t target) {
  throw Failure(VNPU_COPY_FAILED, text("a ", what, " went wrong: the ", size, " bytes at ", hex(target),
                                       " did not arrive as they were sent; their checksum differs"));
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
  region.header().answers[command.slot] = {Delivery::Made, 0, sent.value()};
  region.header().counters.bytesToHost += command.size;
}

void copyOnDevice(const Command &command) {
  for (uint64_t done = 0, size; done < command.size; done += size) {
    size = std::min(command.size - done, BounceBytes);
    std::lock_guard lock(engine);
    Checksum sent;
    sent.copy(bounce, memory(command.source + done), size);
    if (command.misbehaviour == Misbehaviour::Corrupt)
      spoil(bounce, size);
    Checksum arrived;
    if (command.misbehaviour != Misbehaviour::Drop)
      arrived.copy(memory(command.target + done), bounce, size);
    if (arrived.value() != sent.value())
      differs("copy on the device", size, command.target + done);
  }
  region.header().counters.bytesOnDevice += command.size;
}

void fill(const Command &command) {
  uint8_t pattern[BounceBytes];
  std::memset(pattern, int(command.value), sizeof pattern);
  Checksum whole;
  whole.copy(pattern, pattern, sizeof pattern);
  for (uint64_t done = 0, size; done < command.size; done += size) {
    size = std::min(command.size - done, BounceBytes);
    Checksum part;
    if (size < BounceBytes)
      part.copy(pattern, pattern, size);
    std::lock_guard lock(engine);
    Checksum arrived;
    arrived.copy(memory(command.target + done), pattern, size);
    if (arrived.value() != (size < BounceBytes ? part : whole).value())
      differs("fill", size, command.target + done);
  }
  region.header().counters.bytesFilled += command.size;
}

} // namespace vnpu
