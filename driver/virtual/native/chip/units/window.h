// The local memories of one core: their addresses in its window, and the bytes behind them.
#pragma once

#include "description.h"

#include <string>

namespace vnpu {

class Window {
public:
  // Throws std::runtime_error if the system has no memory.
  explicit Window(const ChipDescription &chip);
  Window(const Window &) = delete;

  void *base() const { return base_; }
  // Fills all memories with the byte.
  void fill(uint8_t value);
  bool contains(uint64_t address) const { return address - start() < bytes_; }
  // The memory that holds all bytes from `low` to `high`; 0 if none does.
  MemoryIndex memoryOf(uint64_t low, uint64_t high) const;
  // The memory that holds all bytes from `low` to `high`. Throws Mistake, which begins with `what`.
  MemoryIndex memory(uint64_t low, uint64_t high, const std::string &what) const;
  // Where the other units find the byte of an address in that memory.
  uint8_t *data(MemoryIndex memory, uint64_t address) const {
    return data_[memory] + (address - start() - chip_.memories[memory].base);
  }
  // "byte 12 of 'left'", for an address in the window.
  std::string place(uint64_t address) const;
  // "bytes 0 to 63 of 'left'"
  std::string places(uint64_t low, uint64_t high) const;

private:
  uint64_t start() const { return reinterpret_cast<uint64_t>(base_); }
  MemoryIndex before(uint64_t address) const;

  const ChipDescription &chip_;
  const uint64_t bytes_;
  void *base_ = nullptr;
  std::vector<uint8_t *> data_; // by memory
};

} // namespace vnpu
