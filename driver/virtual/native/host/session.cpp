#include "session.h"

#include <cstdlib>

namespace vnpu {

Session::Session(const vnpu_config &config, const Range &range, std::atomic<uint64_t> &handles)
    : chip_(config, range), channel_(chip_), memory_(range.start(), range.bytes(), config.memory_bytes),
      handles_(handles) {
  queues_.emplace(VNPU_DEFAULT_QUEUE, DefaultQueue);
}

uint64_t Session::allocate(uint64_t size, uint64_t alignment) {
  chip_.requireAlive();
  if (faults_.allocationFails())
    throw Error(VNPU_OUT_OF_MEMORY,
                text("vnpu_alloc: ", size, " bytes refused by the injected fault fail-alloc"));
  const uint64_t address = memory_.allocate(size, alignment);
  tellAllocated(address, size);
  return address;
}

// Units of a chip with a description reach allocated memory only.
void Session::tellAllocated(uint64_t address, uint64_t size) {
  if (!chip_.config().description[0])
    return;
  Command allocated{.kind = Kind::Allocated};
  allocated.target = address;
  allocated.value = size;
  channel_.control(allocated);
}

void Session::release(uint64_t address) {
  // Work in flight may use it. A lost chip has none.
  if (!chip_.lost()) {
    try {
      drainAll();
    } catch (const Error &) {
    }
  }
  if (chip_.config().description[0] && !chip_.lost()) {
    Command released{.kind = Kind::Released};
    released.target = address;
    try {
      channel_.control(released);
    } catch (const Error &) { // lost just now
    }
  }
  endImport(address);
  memory_.release(address, [this](const std::vector<Extent> &extents) {
    constexpr size_t Most = SlotBytes / sizeof(Extent);
    for (size_t first = 0; first < extents.size() && !chip_.lost(); first += Most)
      try {
        size_t count = std::min(Most, extents.size() - first);
        channel_.control({.kind = Kind::Discard}, &extents[first], count * sizeof(Extent));
      } catch (const Error &) { // lost just now; its memory is gone
      }
  });
}

void Session::drainAll() {
  for (uint32_t index : queueIndices())
    channel_.drain(index);
}

// The text of a failure, with the allocations of the addresses that it names.
std::string Session::withAllocations(std::string sentence) const {
  for (size_t at = 0; (at = sentence.find(AddressMark, at)) != std::string::npos;) {
    const size_t number = at + sizeof AddressMark - 1;
    char *end = nullptr;
    const uint64_t address = std::strtoull(sentence.c_str() + number, &end, 16);
    const std::string found = memory_.describe(address);
    sentence.replace(at, size_t(end - sentence.c_str()) - at, found);
    at += found.size();
  }
  return sentence;
}

void Session::throwFailure(uint32_t queue) {
  if (auto failure = channel_.takeFailure(queue))
    throw Error(failure->status, withAllocations(failure->what()));
}

// A command of a call, which counts for armed faults.
Command Session::command(Kind kind, bool copies) {
  chip_.requireAlive();
  Faults::Orders orders = faults_.command(copies);
  Command made;
  made.kind = kind;
  made.misbehaviour = orders.misbehaviour;
  made.delayMicroseconds = orders.delayMicroseconds;
  made.counted = 1;
  return made;
}

} // namespace vnpu
