// The bytes that a command reads or writes: a strided set, or a list of elements.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace vnpu {

// Bursts of a memory, as bits of words by number.
using Bursts = std::unordered_map<uint64_t, uint64_t>;

class Footprint {
public:
  Footprint() = default;
  // `bytes` bytes from an address.
  Footprint(uint64_t address, uint64_t bytes) : base_(address), run_(bytes) { bound(); }
  // Elements of `elementBytes` at each index of up to 5 dimensions; strides are in bytes, signed.
  Footprint(uint64_t address, const int64_t *sizes, const int64_t *strides, int dimensions,
            uint64_t elementBytes);
  // Elements at these addresses.
  static Footprint of(std::vector<uint64_t> addresses, uint64_t elementBytes);

  bool empty() const { return low_ == high_; }
  uint64_t low() const { return low_; }
  uint64_t high() const { return high_; } // behind the last byte
  // Bytes in whole bursts, which a memory moves. Consecutive runs share a burst.
  uint64_t burstBytes(uint64_t burst) const;
  bool overlaps(const Footprint &other) const;
  // Sets the bits of its bursts: 64 bursts, from one that is a multiple of 64, are a word.
  void mark(uint64_t burst, Bursts &bursts) const;

private:
  void bound();
  template <typename Body> void eachRun(Body body) const;
  std::vector<uint64_t> runs() const; // sorted starts

  uint64_t base_ = 0, run_ = 0, low_ = 0, high_ = 0;
  int dimensions_ = 0; // outside of the run; the last is innermost
  uint64_t sizes_[5] = {};
  int64_t strides_[5] = {};
  std::vector<uint64_t> addresses_; // instead of dimensions
};

} // namespace vnpu
