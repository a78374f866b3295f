#include "allocations.h"

#include <mutex>

namespace vnpu {

Allocations &Allocations::instance() {
  static Allocations *allocations = new Allocations;
  return *allocations;
}

void Allocations::add(uint64_t address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  bytes_[address] = bytes;
}

void Allocations::remove(uint64_t address) {
  std::lock_guard lock(mutex_);
  bytes_.erase(address);
}

bool Allocations::hold(uint64_t address, uint64_t bytes) const {
  std::shared_lock lock(mutex_);
  auto next = bytes_.upper_bound(address);
  if (next == bytes_.begin())
    return false;
  const auto &[start, size] = *std::prev(next);
  return address - start <= size && bytes <= size - (address - start);
}

} // namespace vnpu
