// The description of a chip with on-chip memory, read from the compact text that Python's
// `ChipDescription.text` writes. docs/npu.md explains it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vnpu {

struct MemoryDescription {
  std::string name;
  enum Scope { OfChip, OfCluster, OfCore } scope = OfCore;
  uint64_t bytes = 0, base = 0; // what a core sees of a local memory, and where in its window
  uint64_t alignment = 1, banks = 1, burstBytes = 1;
  double bytesPerCycle = 1, latency = 0;
  bool coreAccess = false;
};

// Memories are named by their index; 0 is global memory.
using MemoryIndex = uint32_t;

struct EngineDescription {
  std::string name;
  uint32_t channels = 0, dimensions = 0, elementBytes = 0, queue = 1; // element sizes are a set of bits
  uint64_t alignment = 1;
  double bytesPerCycle = 1, startCycles = 0, gatherCycles = 0;
  bool gathers = false;
  std::vector<std::pair<MemoryIndex, MemoryIndex>> routes;

  bool routed(MemoryIndex source, MemoryIndex target) const {
    for (auto &route : routes)
      if (route == std::pair(source, target))
        return true;
    return false;
  }
};

struct ProductDescription {
  std::vector<int32_t> operands; // numbers of element types, as in tpk_npu.h
  int32_t sums = 0;
  int64_t tile[3] = {1, 1, 1};
  double cycles = 1;
};

struct MatrixDescription {
  MemoryIndex a = 0, b = 0, sums = 0; // 0: there is no matrix unit
  uint64_t alignment = 1;
  double startCycles = 0;
  uint32_t queue = 1;
  bool transposes = false;
  std::vector<ProductDescription> products;

  const ProductDescription *product(int32_t a, int32_t b, int32_t sums) const;
};

inline constexpr uint32_t WorkKinds = 9;
inline constexpr uint32_t MostChannels = 16;

struct ChipDescription {
  uint64_t digest = 0;
  std::string name;
  double clockMegahertz = 1000, launchCycles = 0, issueCycles = 0;
  double hostBytesPerCycle = 1, hostStartCycles = 0;
  double linkBytesPerCycle = 0, linkLatency = 0; // 0: other chips are reached by way of the host
  uint32_t clusters = 1, coresPerCluster = 1;
  std::vector<MemoryDescription> memories;
  std::vector<EngineDescription> engines;
  std::vector<uint32_t> channelEngines; // the engine of each channel
  uint64_t vectorBytes = 1;
  std::array<double, WorkKinds> workCycles{};
  MatrixDescription matrix;

  // Throws std::invalid_argument, whose message names the line.
  static ChipDescription parse(std::string_view text);

  uint32_t cores() const { return clusters * coresPerCluster; }
  uint32_t channels() const { return uint32_t(channelEngines.size()); }
  uint32_t units() const { return 2 + channels(); }
  const EngineDescription &engine(uint32_t channel) const { return engines[channelEngines[channel]]; }
  uint64_t windowBytes() const;
  std::string unitName(uint32_t unit) const;
  // How many the chip has of a memory.
  uint32_t instances(const MemoryDescription &memory) const;
};

// The name of an element type of tpk_npu.h; nullptr for other numbers.
const char *elementName(int32_t type);
uint32_t elementBytes(int32_t type);

} // namespace vnpu
