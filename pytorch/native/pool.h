// A caching allocator for device memory: blocks that tensors have freed, by stream and size class.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tpk::storage {

/// Bytes now, at the highest since the last reset of the peaks, and in total.
struct Count {
  std::uint64_t current = 0;
  std::uint64_t peak = 0;
  std::uint64_t allocated = 0;
  std::uint64_t freed = 0;

  void add(std::uint64_t bytes) noexcept {
    current += bytes;
    allocated += bytes;
    peak = current > peak ? current : peak;
  }
  void remove(std::uint64_t bytes) noexcept {
    current -= bytes;
    freed += bytes;
  }
};

struct Statistics {
  Count allocations; ///< blocks of live tensors
  Count requested;   ///< bytes that these tensors asked for
  Count active;      ///< bytes of these blocks
  Count reserved;    ///< bytes of all blocks, cached ones included
};

/// Memory from the device.
struct Block {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t requested;
  std::int64_t stream;
};

/// A block and whether a live tensor has it.
struct Segment {
  Block block;
  bool live;
};

/// Rounds a size up to a size class: eight classes for each power of two, so that at most 1/8 is lost.
std::uint64_t size_class(std::uint64_t bytes) noexcept;

/// Every method may be called from any thread.
///
/// A block serves tensors of one stream, which is why a freed block may be taken again at once: work that
/// uses the old tensor precedes work that uses the new one. Tensors that other streams use, too, are marked
/// with `use`; their blocks wait in `pending` until the caller has ordered these streams.
class Pool {
public:
  /// A cached block of the size class of `bytes`; address 0 if there is none.
  Block take(std::uint64_t bytes, std::int64_t stream);
  /// Adds a block that the device allocated for a tensor.
  Block adopt(std::uint64_t address, std::uint64_t bytes, std::int64_t stream);
  /// Returns a tensor's block. Blocks from before `forget` are dropped.
  void give(const Block &block, std::uint64_t generation) noexcept;
  /// Notes that the live tensor whose storage begins at `address` is used on `stream`. False if there is
  /// none.
  bool use(std::uint64_t address, std::int64_t stream);
  /// Takes the blocks that other streams have used: each with these streams.
  std::vector<std::pair<Block, std::vector<std::int64_t>>> take_pending();
  /// Makes a pending block available, once its stream waits for the others.
  void settle(const Block &block);
  /// Removes all cached blocks, and returns their addresses for the device to free.
  std::vector<std::uint64_t> release();
  /// Forgets all blocks: the device was reset.
  void forget() noexcept;

  std::uint64_t generation() const noexcept;
  Statistics statistics() const;
  std::vector<Segment> snapshot() const;
  void reset_peaks();
  /// Whether `take_pending` would return a block.
  bool has_pending() const noexcept { return pending_count_ != 0; }

private:
  using Key = std::pair<std::int64_t, std::uint64_t>; // stream, bytes

  mutable std::mutex mutex_;
  std::uint64_t generation_ = 0;
  std::map<Key, std::vector<std::uint64_t>> cached_;
  std::unordered_map<std::uint64_t, Block> live_;
  std::unordered_map<std::uint64_t, std::vector<std::int64_t>> used_;
  std::vector<std::pair<Block, std::vector<std::int64_t>>> pending_;
  std::size_t pending_count_ = 0;
  Statistics statistics_;
};

} // namespace tpk::storage
