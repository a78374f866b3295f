#include "memory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace standin {
namespace {

constexpr size_t Granule = 512, Offset = 256;
constexpr size_t Largest = size_t(1) << 20; // bytes of an allocation that are filled
constexpr uint8_t Pattern = 0xA5;

void *reserve(size_t bytes, int protection) {
  void *made = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED)
    throw std::bad_alloc();
  return made;
}

} // namespace

Memory::Memory(size_t limit)
    : limit_(limit), base_(uint64_t(reserve(Span, PROT_NONE))), next_(base_),
      shadow_(static_cast<uint8_t *>(reserve(Span, PROT_READ | PROT_WRITE))) {}

Memory::~Memory() {
  munmap(reinterpret_cast<void *>(base_), Span);
  munmap(shadow_, Span);
}

bool Memory::fits(uint64_t begin, size_t bytes) const {
  if (begin + bytes > base_ + Span)
    return false;
  auto after = live_.lower_bound(begin);
  if (after != live_.end() && after->first < begin + bytes)
    return false;
  return after == live_.begin() || std::prev(after)->first + std::prev(after)->second <= begin;
}

uint64_t Memory::allocate(size_t bytes) {
  if (bytes > limit_ || used_ + bytes > limit_)
    return 0;
  // Behind the last one, so that what is freed is not soon used again and use after free is seen.
  uint64_t begin = next_ + Offset;
  if (!fits(begin, bytes)) {
    begin = base_ + Offset;
    for (auto &[address, size] : live_) {
      if (begin + bytes <= address)
        break;
      begin = address + (size + Granule - 1) / Granule * Granule;
    }
    if (!fits(begin, bytes))
      return 0;
  }
  next_ = base_ + (begin - base_ + bytes + Granule - 1) / Granule * Granule;
  live_[begin] = bytes;
  used_ += bytes;
  std::memset(contents(begin), Pattern, std::min(bytes, Largest));
  return begin;
}

bool Memory::free(uint64_t address) {
  auto found = live_.find(address);
  if (found == live_.end())
    return false;
  constexpr size_t Page = 4096;
  uint64_t begin = (address - base_ + Page - 1) / Page * Page,
           end = (address - base_ + found->second) / Page * Page;
  if (begin < end)
    madvise(shadow_ + begin, end - begin, MADV_DONTNEED);
  used_ -= found->second;
  live_.erase(found);
  return true;
}

void Memory::freeAll() {
  live_.clear();
  used_ = 0;
  madvise(shadow_, Span, MADV_DONTNEED);
}

std::pair<uint64_t, size_t> Memory::find(uint64_t address) const {
  auto after = live_.upper_bound(address);
  if (after == live_.begin())
    return {0, 0};
  auto found = std::prev(after);
  if (address - found->first >= std::max<size_t>(found->second, 1))
    return {0, 0};
  return *found;
}

} // namespace standin
