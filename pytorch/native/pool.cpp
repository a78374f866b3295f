#include "pool.h"

#include <algorithm>
#include <bit>

namespace tpk::storage {

std::uint64_t size_class(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t smallest = 256;
  if (bytes <= smallest)
    return smallest;
  const std::uint64_t step = std::max(smallest, std::bit_floor(bytes - 1) / 8);
  return (bytes + step - 1) / step * step;
}

Block Pool::take(std::uint64_t bytes, std::int64_t stream) {
  const std::uint64_t rounded = size_class(bytes);
  const std::lock_guard lock(mutex_);
  const auto found = cached_.find({stream, rounded});
  if (found == cached_.end() || found->second.empty())
    return {};
  const Block block{found->second.back(), rounded, bytes, stream};
  live_.emplace(block.address, block);
  found->second.pop_back();
  statistics_.allocations.add(1);
  statistics_.requested.add(bytes);
  statistics_.active.add(rounded);
  return block;
}

Block Pool::adopt(std::uint64_t address, std::uint64_t bytes, std::int64_t stream) {
  const Block block{address, size_class(bytes), bytes, stream};
  const std::lock_guard lock(mutex_);
  live_.insert_or_assign(address, block);
  statistics_.allocations.add(1);
  statistics_.requested.add(bytes);
  statistics_.active.add(block.bytes);
  statistics_.reserved.add(block.bytes);
  return block;
}

void Pool::give(const Block &block, std::uint64_t generation) noexcept {
  const std::lock_guard lock(mutex_);
  if (generation != generation_)
    return;
  live_.erase(block.address);
  statistics_.allocations.remove(1);
  statistics_.requested.remove(block.requested);
  statistics_.active.remove(block.bytes);
  try {
    const auto used = used_.find(block.address);
    if (used != used_.end()) {
      pending_.emplace_back(block, std::move(used->second));
      used_.erase(used);
      pending_count_ = pending_.size();
    } else {
      cached_[{block.stream, block.bytes}].push_back(block.address);
    }
  } catch (const std::bad_alloc &) {
    // The host has no memory for the note: the block stays reserved until the device is reset.
  }
}

bool Pool::use(std::uint64_t address, std::int64_t stream) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end())
    return false;
  if (found->second.stream != stream) {
    auto &streams = used_[address];
    if (std::find(streams.begin(), streams.end(), stream) == streams.end())
      streams.push_back(stream);
  }
  return true;
}

std::vector<std::pair<Block, std::vector<std::int64_t>>> Pool::take_pending() {
  const std::lock_guard lock(mutex_);
  pending_count_ = 0;
  return std::exchange(pending_, {});
}

void Pool::settle(const Block &block) {
  const std::lock_guard lock(mutex_);
  cached_[{block.stream, block.bytes}].push_back(block.address);
}

std::vector<std::uint64_t> Pool::release() {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> addresses;
  for (const auto &[key, blocks] : cached_) {
    addresses.insert(addresses.end(), blocks.begin(), blocks.end());
    statistics_.reserved.remove(key.second * blocks.size());
  }
  cached_.clear();
  return addresses;
}

void Pool::forget() noexcept {
  const std::lock_guard lock(mutex_);
  ++generation_;
  cached_.clear();
  live_.clear();
  used_.clear();
  pending_.clear();
  pending_count_ = 0;
  for (Count *count :
       {&statistics_.allocations, &statistics_.requested, &statistics_.active, &statistics_.reserved})
    count->remove(count->current);
}

std::uint64_t Pool::generation() const noexcept {
  const std::lock_guard lock(mutex_);
  return generation_;
}

Statistics Pool::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

std::vector<Segment> Pool::snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<Segment> segments;
  for (const auto &[address, block] : live_)
    segments.push_back({block, true});
  for (const auto &[key, addresses] : cached_)
    for (const std::uint64_t address : addresses)
      segments.push_back({{address, key.second, 0, key.first}, false});
  std::sort(segments.begin(), segments.end(),
            [](const Segment &a, const Segment &b) { return a.block.address < b.block.address; });
  return segments;
}

void Pool::reset_peaks() {
  const std::lock_guard lock(mutex_);
  for (Count *count :
       {&statistics_.allocations, &statistics_.requested, &statistics_.active, &statistics_.reserved})
    count->peak = count->current;
}

} // namespace tpk::storage
