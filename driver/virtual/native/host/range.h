// The addresses of the chip's memory. The host reserves them without access, so that dereferencing them
// faults.
#pragma once

#include <cstdint>

namespace vnpu {

class Range {
public:
  // Reserves addresses for a chip's memory; each `attempt` tries elsewhere. Throws OutOfMemory.
  Range(uint64_t memoryBytes, unsigned attempt);
  ~Range();
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

  static constexpr unsigned Attempts = 8;
  uint64_t start() const { return start_; }
  // More than the memory, because allocations may be scattered, and alignments leave gaps.
  uint64_t bytes() const { return bytes_; }

private:
  uint64_t start_, bytes_;
};

} // namespace vnpu
