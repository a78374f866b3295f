#include "flows.h"

#include <algorithm>
#include <limits>

namespace vnpu {
namespace {

constexpr double Never = std::numeric_limits<double>::infinity();
constexpr double Nothing = 1e-6; // bytes, or cycles, that only rounding has left

} // namespace

Flows::Flows(const ChipDescription &chip) : chip_(chip), untilFirst_(Never) {
  for (const MemoryDescription &memory : chip.memories) {
    first_.push_back(uint32_t(bandwidths_.size()));
    bandwidths_.insert(bandwidths_.end(), chip.instances(memory), memory.bytesPerCycle);
  }
  free_.resize(bandwidths_.size());
  sharers_.resize(bandwidths_.size());
}

uint32_t Flows::resource(uint32_t core, MemoryIndex memory) const {
  const auto scope = chip_.memories[memory].scope;
  return first_[memory] + (scope == MemoryDescription::OfChip      ? 0
                           : scope == MemoryDescription::OfCluster ? core / chip_.coresPerCluster
                                                                   : core);
}

void Flows::add(const Flow &flow) {
  flows_.push_back(flow);
  share();
}

void Flows::pass(double cycles) {
  for (Flow &flow : flows_)
    flow.left -= flow.rate * cycles;
  untilFirst_ = std::max(0.0, untilFirst_ - cycles);
}

std::vector<Flow> Flows::takeEnded() {
  std::vector<Flow> ended;
  std::erase_if(flows_, [&](const Flow &flow) {
    if (flow.left > Nothing && flow.left > flow.rate * Nothing)
      return false;
    ended.push_back(flow);
    return true;
  });
  share();
  return ended;
}

// Raises all rates together. One stops at its channel's limit, or where a memory has nothing left.
void Flows::share() {
  auto eachMemory = [](const Flow &flow, auto body) {
    body(flow.resources[0]);
    if (flow.resources[1] != flow.resources[0])
      body(flow.resources[1]);
  };
  for (Flow &flow : flows_) {
    flow.rate = 0;
    eachMemory(flow, [&](uint32_t memory) { free_[memory] = bandwidths_[memory], sharers_[memory] = 0; });
  }
  std::vector<Flow *> rising;
  for (Flow &flow : flows_) {
    rising.push_back(&flow);
    eachMemory(flow, [&](uint32_t memory) { ++sharers_[memory]; });
  }
  while (!rising.empty()) {
    double level = Never;
    for (const Flow *flow : rising) {
      level = std::min(level, flow->limit);
      eachMemory(*flow, [&](uint32_t memory) { level = std::min(level, free_[memory] / sharers_[memory]); });
    }
    std::vector<Flow *> stops;
    for (Flow *flow : rising) {
      bool full = flow->limit <= level;
      eachMemory(*flow, [&](uint32_t memory) { full |= free_[memory] / sharers_[memory] <= level; });
      if (full)
        stops.push_back(flow);
    }
    for (Flow *flow : stops) {
      flow->rate = level;
      eachMemory(*flow, [&](uint32_t memory) {
        free_[memory] = std::max(0.0, free_[memory] - level);
        --sharers_[memory];
      });
      std::erase(rising, flow);
    }
  }
  untilFirst_ = Never;
  for (const Flow &flow : flows_)
    untilFirst_ = std::min(untilFirst_, std::max(0.0, flow.left) / flow.rate);
}

} // namespace vnpu
