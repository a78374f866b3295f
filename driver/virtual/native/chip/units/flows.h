// Transfers that are under way at a time, and how they share the bandwidth of memories.
#pragma once

#include "description.h"

#include <vector>

namespace vnpu {

struct Flow {
  uint32_t core, unit;
  uint32_t resources[2]; // of source and target
  double limit;          // of its channel, in bytes per cycle
  double left;           // bytes
  double rate = 0;
};

// The rates are fair: none can be raised but at the cost of one that is not higher.
class Flows {
public:
  explicit Flows(const ChipDescription &chip);

  // The memory of a core, or the one that it shares with others.
  uint32_t resource(uint32_t core, MemoryIndex memory) const;
  void add(const Flow &flow);
  // Cycles until the first one ends; infinite without any.
  double untilFirstEnds() const { return untilFirst_; }
  // Lets time pass, at most until the first one ends.
  void pass(double cycles);
  // Removes those that have ended, in order of their start.
  std::vector<Flow> takeEnded();
  double bandwidth(uint32_t resource) const { return bandwidths_[resource]; }

private:
  void share();

  const ChipDescription &chip_;
  std::vector<double> bandwidths_; // by resource
  std::vector<uint32_t> first_;    // by memory: the resource of its first instance
  std::vector<Flow> flows_;
  std::vector<double> free_;      // by resource, within `share`
  std::vector<uint32_t> sharers_; // likewise
  double untilFirst_;
};

} // namespace vnpu
