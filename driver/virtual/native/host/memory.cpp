#include "memory.h"

#include <algorithm>

namespace vnpu {
namespace {

constexpr uint64_t LeastAlignment = 64;
constexpr uint64_t MostAlignment = uint64_t(1) << 30;
constexpr uint64_t Page = 65536; // the largest page size of any machine
constexpr uint64_t DiscardBytes = uint64_t(64) << 20;
constexpr int Tries = 8;

uint64_t up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

} // namespace

Memory::Memory(uint64_t start, uint64_t range, uint64_t limit) : limit_(limit) {
  addHole(start, range, false);
}

uint64_t Memory::allocate(uint64_t size, uint64_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) || alignment > MostAlignment)
    throw Error(VNPU_INVALID_ARGUMENT, text("vnpu_alloc: alignment ", alignment,
                                            " is not a power of two from 1 to ", MostAlignment));
  alignment = std::max(alignment, LeastAlignment);
  std::lock_guard lock(mutex_);
  if (size > limit_ - bytes_)
    throw Error(VNPU_OUT_OF_MEMORY, text("vnpu_alloc: ", size, " bytes asked for, ", limit_ - bytes_,
                                         " bytes free (", bytes_, " of ", limit_, " in use)"));
  uint64_t capacity = up(std::max<uint64_t>(size, 1), LeastAlignment), address = 0;
  auto found = find(capacity, alignment, address);
  if (found == holes_.end())
    throw Error(VNPU_OUT_OF_MEMORY, text("vnpu_alloc: ", size, " bytes at alignment ", alignment,
                                         " asked for, and no free piece of memory is as large (", bytes_,
                                         " of ", limit_, " in use)"));
  auto [start, hole] = *found;
  removeHole(found);
  if (address > start)
    addHole(start, address - start, hole.written);
  if (uint64_t end = start + hole.size; end > address + capacity)
    addHole(address + capacity, end - address - capacity, hole.written);
  live_.emplace(address, Block{size, capacity});
  bytes_ += size;
  peak_ = std::max(peak_, bytes_);
  return address;
}

// The smallest hole that is certain to fit, or a smaller one that happens to fit.
Memory::Holes::iterator Memory::find(uint64_t capacity, uint64_t alignment, uint64_t &address) {
  auto take = [&](auto candidate) {
    auto [size, start] = *candidate;
    address = up(start, alignment);
    return address - start + capacity <= size ? holes_.find(start) : holes_.end();
  };
  auto candidate = sizes_.lower_bound({capacity, 0});
  for (int tries = 0; tries < Tries && candidate != sizes_.end(); ++tries, ++candidate)
    if (auto hole = take(candidate); hole != holes_.end())
      return hole;
  for (candidate = sizes_.lower_bound({capacity + alignment - LeastAlignment, 0}); candidate != sizes_.end();
       ++candidate)
    if (auto hole = take(candidate); hole != holes_.end())
      return hole;
  return holes_.end();
}

void Memory::addHole(uint64_t address, uint64_t size, bool written) {
  holes_.emplace(address, Hole{size, written});
  sizes_.emplace(size, address);
}

void Memory::removeHole(Holes::iterator hole) {
  sizes_.erase({hole->second.size, hole->first});
  holes_.erase(hole);
}

void Memory::release(uint64_t address, const Discard &discard) {
  std::lock_guard lock(mutex_);
  auto block = live_.find(address);
  if (block == live_.end()) {
    if (!address)
      throw Error(VNPU_INVALID_POINTER, "vnpu_free: address is NULL");
    if (auto *inside = before(address); inside && address - inside->first < inside->second.capacity)
      throw Error(VNPU_INVALID_POINTER,
                  text("vnpu_free: address ", hex(address), " lies ", address - inside->first,
                       " bytes inside the allocation at ", hex(inside->first), "; free that address"));
    throw Error(VNPU_INVALID_POINTER, text("vnpu_free: address ", hex(address),
                                           " was freed before, or is not of this chip's memory"));
  }
  uint64_t start = address, end = address + block->second.capacity;
  bytes_ -= block->second.size;
  releasedBytes_ += block->second.capacity;
  live_.erase(block);
  if (auto next = holes_.find(end); next != holes_.end()) {
    end += next->second.size;
    removeHole(next);
  }
  auto previous = holes_.lower_bound(start);
  if (previous != holes_.begin() && (--previous)->first + previous->second.size == start) {
    start = previous->first;
    removeHole(previous);
  }
  addHole(start, end - start, true);
  if (releasedBytes_ >= DiscardBytes) {
    releasedBytes_ = 0;
    discardHoles(discard);
  }
}

// Called with the lock held: memory that is allocated again must not be discarded.
void Memory::discardHoles(const Discard &discard) {
  std::vector<Extent> extents;
  for (auto &[start, hole] : holes_) {
    uint64_t from = up(start, Page), to = (start + hole.size) / Page * Page;
    if (hole.written && from < to)
      extents.push_back({from, to - from});
    hole.written = false;
  }
  discard(extents);
}

const std::pair<const uint64_t, Memory::Block> *Memory::before(uint64_t address) const {
  auto next = live_.upper_bound(address);
  return next == live_.begin() ? nullptr : &*std::prev(next);
}

void Memory::check(const char *call, const char *argument, uint64_t address, uint64_t size) const {
  if (!address && !size) // an empty array may have no memory
    return;
  if (!address)
    throw Error(VNPU_INVALID_POINTER, text(call, ": ", argument, " is NULL"));
  std::lock_guard lock(mutex_);
  auto *block = before(address);
  uint64_t offset = block ? address - block->first : 0;
  if (!block || offset > block->second.size)
    throw Error(VNPU_INVALID_POINTER,
                text(call, ": ", argument, " ", hex(address), " is not in a live allocation of this chip"));
  if (size > block->second.size - offset)
    throw Error(VNPU_INVALID_POINTER, text(call, ": ", argument, " ", hex(address), " plus ", size,
                                           " bytes leaves the allocation of ", block->second.size,
                                           " bytes at ", hex(block->first)));
}

bool Memory::isPointer(uint64_t address) const {
  if (!address)
    return true;
  std::lock_guard lock(mutex_);
  auto *block = before(address);
  return block && address - block->first <= block->second.size;
}

std::string Memory::describe(uint64_t address) const {
  std::lock_guard lock(mutex_);
  const auto *block = before(address);
  if (!block)
    return text("address ", hex(address), ", in no allocation");
  const uint64_t offset = address - block->first, size = block->second.size;
  if (offset < size)
    return text("address ", hex(address), ", byte ", offset, " of the allocation of ", size, " bytes at ",
                hex(block->first));
  return text("address ", hex(address), ", ", offset - size, " bytes behind the allocation of ", size,
              " bytes at ", hex(block->first));
}

Memory::Usage Memory::usage() const {
  std::lock_guard lock(mutex_);
  return {bytes_, peak_, live_.size()};
}

} // namespace vnpu
