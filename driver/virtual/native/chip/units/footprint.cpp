#include "footprint.h"

#include <algorithm>

namespace vnpu {

Footprint::Footprint(uint64_t address, const int64_t *sizes, const int64_t *strides, int dimensions,
                     uint64_t elementBytes)
    : base_(address), run_(elementBytes) {
  // From the innermost dimension: what continues the run becomes part of it, what repeats adds nothing.
  int64_t kept[5], keptSizes[5];
  int count = 0;
  for (int d = dimensions; d-- > 0;) {
    if (sizes[d] <= 0) {
      run_ = 0;
      bound();
      return;
    }
    if (sizes[d] == 1 || strides[d] == 0)
      continue;
    if (count == 0 && strides[d] == int64_t(run_)) {
      run_ *= uint64_t(sizes[d]);
    } else if (count && strides[d] == kept[count - 1] * keptSizes[count - 1]) {
      keptSizes[count - 1] *= sizes[d];
    } else {
      kept[count] = strides[d];
      keptSizes[count++] = sizes[d];
    }
  }
  dimensions_ = count;
  for (int d = 0; d < count; ++d) {
    sizes_[d] = uint64_t(keptSizes[count - 1 - d]);
    strides_[d] = kept[count - 1 - d];
  }
  bound();
}

Footprint Footprint::of(std::vector<uint64_t> addresses, uint64_t elementBytes) {
  Footprint made;
  if (addresses.empty())
    return made;
  made.run_ = elementBytes;
  made.addresses_ = std::move(addresses);
  auto [least, most] = std::minmax_element(made.addresses_.begin(), made.addresses_.end());
  made.low_ = *least;
  made.high_ = *most + elementBytes;
  return made;
}

void Footprint::bound() {
  low_ = base_;
  high_ = base_ + run_;
  if (!run_)
    return;
  for (int d = 0; d < dimensions_; ++d) {
    const int64_t reach = strides_[d] * int64_t(sizes_[d] - 1);
    (reach < 0 ? low_ : high_) += uint64_t(reach);
  }
}

template <typename Body> void Footprint::eachRun(Body body) const {
  if (!addresses_.empty()) {
    for (uint64_t address : addresses_)
      body(address);
    return;
  }
  uint64_t index[5] = {}, address = base_;
  for (;;) {
    body(address);
    int d = dimensions_ - 1;
    for (; d >= 0; --d) {
      address += uint64_t(strides_[d]);
      if (++index[d] < sizes_[d])
        break;
      address -= uint64_t(strides_[d]) * sizes_[d];
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

uint64_t Footprint::burstBytes(uint64_t burst) const {
  if (empty())
    return 0;
  uint64_t bursts = 0, last = ~uint64_t(0);
  eachRun([&](uint64_t address) {
    const uint64_t first = address / burst, end = (address + run_ - 1) / burst;
    bursts += end - first + 1 - (first == last || end == last);
    last = end;
  });
  return bursts * burst;
}

void Footprint::mark(uint64_t burst, Bursts &bursts) const {
  if (empty())
    return;
  eachRun([&](uint64_t address) {
    for (uint64_t at = address / burst; at <= (address + run_ - 1) / burst; ++at)
      bursts[at / 64] |= uint64_t(1) << at % 64;
  });
}

std::vector<uint64_t> Footprint::runs() const {
  std::vector<uint64_t> starts;
  eachRun([&](uint64_t address) { starts.push_back(address); });
  std::sort(starts.begin(), starts.end());
  return starts;
}

bool Footprint::overlaps(const Footprint &other) const {
  if (empty() || other.empty() || low_ >= other.high_ || other.low_ >= high_)
    return false;
  const bool whole = !dimensions_ && addresses_.empty();
  const bool otherWhole = !other.dimensions_ && other.addresses_.empty();
  if (whole && otherWhole)
    return true;
  if (whole) { // the cheaper side is the one that is sorted
    bool found = false;
    other.eachRun([&](uint64_t at) { found |= at < high_ && low_ < at + other.run_; });
    return found;
  }
  const std::vector<uint64_t> starts = runs();
  bool found = false;
  other.eachRun([&](uint64_t at) {
    // The first run that ends behind `at`.
    auto next = std::upper_bound(starts.begin(), starts.end(), at >= run_ ? at - run_ : 0);
    if (at < run_)
      next = starts.begin();
    found |= next != starts.end() && *next < at + other.run_;
  });
  return found;
}

} // namespace vnpu
