#include "allocator.h"

#include <algorithm>
#include <cstdlib>
#include <sys/mman.h>

namespace tpk {
namespace {

constexpr uint64_t MinimumAlignment = 64;
constexpr uint64_t PageSize = 4096;
constexpr uint64_t MappedThreshold = uint64_t(1) << 20;
constexpr uint64_t MaximumAlignment = uint64_t(1) << 30;
constexpr uint64_t QuarantineBytes = uint64_t(8) << 20;
constexpr size_t QuarantineBlocks = 4096;

uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// `capacity` bytes of fresh pages at a multiple of `alignment`, or 0.
uint64_t mapPages(uint64_t capacity, uint64_t alignment) {
  uint64_t slack = alignment > PageSize ? alignment : 0;
  void *raw = mmap(nullptr, capacity + slack, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return 0;
  uint64_t start = reinterpret_cast<uint64_t>(raw);
  uint64_t address = roundUp(start, std::max(alignment, PageSize));
  if (address > start)
    munmap(raw, address - start);
  if (uint64_t tail = start + slack - address)
    munmap(reinterpret_cast<void *>(address + capacity), tail);
  return address;
}

void give(uint64_t address, uint64_t capacity, bool mapped) {
  if (mapped)
    munmap(reinterpret_cast<void *>(address), capacity);
  else
    std::free(reinterpret_cast<void *>(address));
}

template <typename Blocks> auto owner(Blocks &blocks, uint64_t address) {
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin())
    return blocks.end();
  auto block = std::prev(next);
  return address - block->first < block->second.capacity ? block : blocks.end();
}

} // namespace

Allocator::~Allocator() {
  for (auto *blocks : {&live_, &retired_})
    for (auto &[address, block] : *blocks)
      give(address, block.capacity, block.mapped);
}

uint64_t Allocator::allocate(uint64_t size, uint64_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) || alignment > MaximumAlignment)
    throw Error(Code::InvalidArgument, text("memalloc: alignment ", alignment,
                                            " is not a power of two between 1 and ", MaximumAlignment));
  alignment = std::max(alignment, MinimumAlignment);
  std::lock_guard lock(mutex);
  if (size > limit_ - inUse_)
    throw Error(Code::OutOfMemory, text("memalloc: ", size, " bytes asked for, ", limit_ - inUse_,
                                        " bytes free (", inUse_, " of ", limit_, " in use)"));
  bool mapped = size >= MappedThreshold;
  // One byte more than requested, so that the address after the last element still belongs to this block.
  uint64_t capacity = roundUp(size + 1, std::max(alignment, mapped ? PageSize : 0));
  uint64_t address = mapped ? mapPages(capacity, alignment)
                            : reinterpret_cast<uint64_t>(std::aligned_alloc(alignment, capacity));
  if (!address)
    throw Error(Code::OutOfMemory, text("memalloc: the system refused ", size, " bytes at alignment ",
                                        alignment, " (", inUse_, " of ", limit_, " in use)"));
  live_.emplace(address, Block{size, capacity, mapped});
  inUse_ += size;
  peak_ = std::max(peak_, inUse_);
  return address;
}

void Allocator::release(uint64_t address) {
  std::lock_guard lock(mutex);
  if (!address)
    throw Error(Code::InvalidPointer, "memfree: addr is NULL");
  auto block = live_.find(address);
  if (block != live_.end())
    return retire(block);
  if (retired_.count(address))
    throw Error(Code::InvalidPointer, text("memfree: addr ", hex(address), " was freed before"));
  if (auto inside = owner(live_, address); inside != live_.end())
    throw Error(Code::InvalidPointer,
                text("memfree: addr ", hex(address), " lies ", address - inside->first,
                     " bytes inside the allocation at ", hex(inside->first), "; free that address"));
  throw Error(Code::InvalidPointer,
              text("memfree: addr ", hex(address), " was not allocated by this device"));
}

void Allocator::releaseAll() {
  std::lock_guard lock(mutex);
  while (!live_.empty())
    retire(live_.begin());
  peak_ = 0;
}

void Allocator::retire(Blocks::iterator block) {
  auto [address, entry] = *block;
  inUse_ -= entry.size;
  live_.erase(block);
  if (entry.mapped) {
    // Frees the memory at once and keeps the addresses reserved.
    void *held = mmap(reinterpret_cast<void *>(address), entry.capacity, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (held == MAP_FAILED) // the process has no mapping left; the old one is unchanged
      return give(address, entry.capacity, true);
  } else {
    retiredBytes_ += entry.capacity;
  }
  retired_.emplace(address, entry);
  retiredOrder_.push_back(address);
  while (retiredOrder_.size() > QuarantineBlocks || retiredBytes_ > QuarantineBytes) {
    evict(retiredOrder_.front());
    retiredOrder_.pop_front();
  }
}

void Allocator::evict(uint64_t address) {
  auto block = retired_.find(address);
  if (!block->second.mapped)
    retiredBytes_ -= block->second.capacity;
  give(address, block->second.capacity, block->second.mapped);
  retired_.erase(block);
}

void Allocator::check(const char *call, const char *argument, uint64_t address, uint64_t size) {
  uint64_t end;
  if (__builtin_add_overflow(address, size, &end))
    throw Error(Code::InvalidPointer, text(call, ": ", argument, " ", hex(address), " plus ", size,
                                           " bytes leaves the address space"));
  if (!address) {
    if (size == 0) // an empty torch tensor has no memory and no address
      return;
    throw Error(Code::InvalidPointer, text(call, ": ", argument, " is NULL"));
  }
  if (address < PageSize) // never mapped: an offset from NULL
    throw Error(Code::InvalidPointer, text(call, ": ", argument, " is NULL plus ", address));
  std::lock_guard lock(mutex);
  if (auto block = owner(live_, address); block != live_.end()) {
    uint64_t offset = address - block->first;
    if (offset > block->second.size || size > block->second.size - offset)
      throw Error(Code::InvalidPointer, text(call, ": ", argument, " ", hex(address), " plus ", size,
                                             " bytes leaves the allocation of ", block->second.size,
                                             " bytes at ", hex(block->first)));
    return;
  }
  if (auto block = owner(retired_, address); block != retired_.end())
    throw Error(Code::InvalidPointer, text(call, ": ", argument, " ", hex(address),
                                           " lies in a freed allocation of ", block->second.size, " bytes"));
  for (auto *blocks : {&live_, &retired_}) {
    auto next = blocks->lower_bound(address);
    if (next != blocks->end() && next->first < end)
      throw Error(Code::InvalidPointer,
                  text(call, ": ", argument, " ", hex(address), " plus ", size,
                       " bytes runs into an allocation of this device at ", hex(next->first)));
  }
}

std::optional<Allocator::Extent> Allocator::find(uint64_t address) {
  std::lock_guard lock(mutex);
  auto block = owner(live_, address);
  if (block == live_.end())
    return {};
  return Extent{block->first, block->second.size};
}

Allocator::Usage Allocator::usage() {
  std::lock_guard lock(mutex);
  return {inUse_, peak_, live_.size(), limit_};
}

} // namespace tpk
