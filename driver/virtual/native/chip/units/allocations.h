// Which bytes of global memory are allocated. Units reach no others.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace vnpu {

class Allocations {
public:
  static Allocations &instance();

  void add(uint64_t address, uint64_t bytes);
  void remove(uint64_t address);
  // Whether all bytes from `address` are in one allocation.
  bool hold(uint64_t address, uint64_t bytes) const;

private:
  std::atomic<uint64_t> changes_{1};
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, uint64_t> bytes_; // by address
};

} // namespace vnpu
