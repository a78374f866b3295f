// The memory of one device: addresses that the host cannot touch, and its contents elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace standin {

class Memory {
public:
  explicit Memory(size_t limit);
  ~Memory();
  Memory(const Memory &) = delete;

  // An address, or 0 where too little is left. Multiples of 256, and of nothing more. Filled with a pattern.
  uint64_t allocate(size_t bytes);
  bool free(uint64_t address);
  void freeAll();

  // The allocation that holds the address: its address and size; {0, 0} for none.
  std::pair<uint64_t, size_t> find(uint64_t address) const;
  bool reserved(uint64_t address) const { return address - base_ < Span; }
  uint8_t *contents(uint64_t address) const { return shadow_ + (address - base_); }

  size_t used() const { return used_; }
  size_t limit() const { return limit_; }
  size_t count() const { return live_.size(); }

private:
  static constexpr size_t Span = size_t(64) << 30;
  bool fits(uint64_t begin, size_t bytes) const;

  size_t limit_, used_ = 0;
  uint64_t base_, next_;
  uint8_t *shadow_;
  std::map<uint64_t, size_t> live_;
};

} // namespace standin
