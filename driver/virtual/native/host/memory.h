// The chip's memory as its driver manages it: live allocations and free addresses.
#pragma once

#include "error.h"
#include "protocol.h"

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace vnpu {

class Memory {
public:
  struct Usage {
    uint64_t bytes, peak, count;
  };

  // At most `limit` bytes are live at a time, at addresses from `start` to `start + range`.
  Memory(uint64_t start, uint64_t range, uint64_t limit);

  // Throws InvalidArgument for a bad alignment, and OutOfMemory.
  uint64_t allocate(uint64_t size, uint64_t alignment);
  // Throws InvalidPointer. When much of the free memory may still occupy pages of the machine, all of it is
  // passed to `discard`.
  using Discard = std::function<void(const std::vector<Extent> &)>;
  void release(uint64_t address, const Discard &discard);
  // Throws InvalidPointer unless the bytes lie in one live allocation.
  void check(const char *call, const char *argument, uint64_t address, uint64_t size) const;
  // Whether a kernel may get this address: NULL, in a live allocation, or at the end of one.
  bool isPointer(uint64_t address) const;
  // "address 0x1234, byte 52 of the allocation of 4096 bytes at 0x1200"
  std::string describe(uint64_t address) const;
  Usage usage() const;

private:
  struct Block {
    uint64_t size, capacity;
  };
  struct Hole {
    uint64_t size;
    bool written;
  };
  using Holes = std::map<uint64_t, Hole>;

  Holes::iterator find(uint64_t capacity, uint64_t alignment, uint64_t &address);
  void addHole(uint64_t address, uint64_t size, bool written);
  void removeHole(Holes::iterator hole);
  void discardHoles(const Discard &discard);
  // The last live allocation that begins at or before the address.
  const std::pair<const uint64_t, Block> *before(uint64_t address) const;

  mutable std::mutex mutex_;
  const uint64_t limit_;
  std::map<uint64_t, Block> live_;
  Holes holes_;                                   // by address; no two touch
  std::set<std::pair<uint64_t, uint64_t>> sizes_; // the same holes, by size and address
  uint64_t bytes_ = 0, peak_ = 0;
  uint64_t releasedBytes_ = 0; // since the last discard
};

} // namespace vnpu
