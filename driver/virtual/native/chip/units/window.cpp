#include "window.h"
#include "mistake.h"

#include "../chip.h"

#include <cstring>
#include <sys/mman.h>

namespace vnpu {
namespace {

void *reserve(uint64_t bytes, int protection) {
  void *memory = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error(text("no ", bytes, " bytes for the local memories of a core"));
  return memory;
}

} // namespace

Window::Window(const ChipDescription &chip)
    : chip_(chip), bytes_(chip.windowBytes()), base_(reserve(bytes_, PROT_NONE)),
      data_(chip.memories.size()) {
  for (MemoryIndex index = 1; index < chip.memories.size(); ++index) {
    const MemoryDescription &memory = chip.memories[index];
    auto *here = static_cast<uint8_t *>(base_) + memory.base;
    // What core code cannot reach lies elsewhere, and its addresses in the window stay unmapped.
    if (!memory.coreAccess)
      here = static_cast<uint8_t *>(reserve(memory.bytes, PROT_READ | PROT_WRITE));
    else if (mprotect(here, memory.bytes, PROT_READ | PROT_WRITE))
      throw std::runtime_error(text("no ", memory.bytes, " bytes for memory '", memory.name, "' of a core"));
    data_[index] = here;
  }
}

void Window::fill(uint8_t value) {
  for (MemoryIndex index = 1; index < chip_.memories.size(); ++index)
    std::memset(data_[index], value, chip_.memories[index].bytes);
}

MemoryIndex Window::before(uint64_t address) const {
  MemoryIndex found = 1;
  for (MemoryIndex index = 2; index < chip_.memories.size(); ++index)
    if (start() + chip_.memories[index].base <= address)
      found = index;
  return found;
}

MemoryIndex Window::memoryOf(uint64_t low, uint64_t high) const {
  const MemoryIndex index = contains(low) ? before(low) : 0;
  const uint64_t offset = low - start() - chip_.memories[index].base, bytes = chip_.memories[index].bytes;
  return index && offset < bytes && high - low <= bytes - offset ? index : 0;
}

MemoryIndex Window::memory(uint64_t low, uint64_t high, const std::string &what) const {
  const MemoryIndex index = before(low);
  const MemoryDescription &memory = chip_.memories[index];
  const uint64_t offset = low - start() - memory.base;
  if (offset >= memory.bytes)
    throw Mistake{text(what, " reaches ", place(low), ": outside of the core's memories")};
  if (high - low > memory.bytes - offset)
    throw Mistake{text(what, " reaches from byte ", offset, " to byte ", offset + (high - low) - 1, " of '",
                       memory.name, "', which has ", memory.bytes, " bytes")};
  return index;
}

std::string Window::place(uint64_t address) const {
  const MemoryDescription &memory = chip_.memories[before(address)];
  const uint64_t offset = address - start() - memory.base;
  if (offset < memory.bytes)
    return text("byte ", offset, " of '", memory.name, "'");
  return text(offset - memory.bytes, " bytes behind the end of '", memory.name, "', which has ", memory.bytes,
              " bytes");
}

std::string Window::places(uint64_t low, uint64_t high) const {
  const MemoryDescription &memory = chip_.memories[before(low)];
  const uint64_t offset = low - start() - memory.base;
  return text("bytes ", offset, " to ", offset + (high - low) - 1, " of '", memory.name, "'");
}

} // namespace vnpu
