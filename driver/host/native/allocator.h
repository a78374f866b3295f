// Device memory of the host: aligned blocks, with accounting and checks of every address that is passed in.
#pragma once

#include "status.h"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

namespace tpk {

// Freed blocks stay in a bounded quarantine before they are returned to the system. Meanwhile their addresses
// cannot belong to anything else, so a use after free can be distinguished from memory of torch or numpy,
// which may be used on the host. Large blocks keep only their addresses in quarantine, and no memory.
class Allocator {
public:
  struct Usage {
    uint64_t inUse, peak, count, limit;
  };

  explicit Allocator(uint64_t limit) : limit_(limit) {}
  ~Allocator();
  Allocator(const Allocator &) = delete;
  Allocator &operator=(const Allocator &) = delete;

  // A block of `size` bytes (0 allowed: the address is still unique) at a multiple of max(alignment, 64).
  uint64_t allocate(uint64_t size, uint64_t alignment);
  void release(uint64_t address);
  void releaseAll();
  // Refuses NULL, freed memory, and ranges that partially overlap an allocation.
  void check(const char *call, const char *argument, uint64_t address, uint64_t size);
  Usage usage();
  struct Extent {
    uint64_t begin, size;
  };
  // The live allocation that contains an address, or ends there.
  std::optional<Extent> find(uint64_t address);

  std::mutex mutex; // public for fork()

private:
  struct Block {
    uint64_t size;     // what was asked for
    uint64_t capacity; // the bytes taken
    bool mapped;       // from mmap, not from malloc
  };
  using Blocks = std::map<uint64_t, Block>;

  void retire(Blocks::iterator block);
  void evict(uint64_t address);

  Blocks live_, retired_;
  std::deque<uint64_t> retiredOrder_;
  uint64_t retiredBytes_ = 0; // of blocks that still hold memory
  uint64_t limit_, inUse_ = 0, peak_ = 0;
};

} // namespace tpk
