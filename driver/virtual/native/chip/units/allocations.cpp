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
  ++changes_;
}

void Allocations::remove(uint64_t address) {
  std::lock_guard lock(mutex_);
  bytes_.erase(address);
  ++changes_;
}

bool Allocations::hold(uint64_t address, uint64_t bytes) const {
  // A core's accesses are mostly of the allocation of the last one.
  static thread_local struct Last {
    uint64_t changes = 0, start = 0, size = 0;

    bool holds(uint64_t address, uint64_t bytes) const {
      return address - start <= size && bytes <= size - (address - start);
    }
  } last;
  const uint64_t changes = changes_;
  if (last.changes == changes && last.holds(address, bytes))
    return true;
  std::shared_lock lock(mutex_);
  auto next = bytes_.upper_bound(address);
  if (next == bytes_.begin())
    return false;
  last = {changes, std::prev(next)->first, std::prev(next)->second};
  return last.holds(address, bytes);
}

} // namespace vnpu
