// The addresses that the chip's memory has. The host keeps them to itself without access: what it
// dereferences faults.
#pragma once

#include <cstdint>

namespace vnpu {

class Range {
public:
  // Reserves addresses for a chip's memory, `attempt` by attempt elsewhere. Throws OutOfMemory.
  Range(uint64_t memoryBytes, unsigned attempt);
  ~Range();
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

  static constexpr unsigned Attempts = 8;
  uint64_t start() const { return start_; }
  // More than there is memory: what is in use may be spread, and alignments leave gaps.
  uint64_t bytes() const { return bytes_; }

private:
  uint64_t start_, bytes_;
};

} // namespace vnpu
