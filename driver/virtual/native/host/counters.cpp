// Counters of a session. They are figures for people and not checked.
#include "description.h"
#include "session.h"

#include <cstring>

namespace vnpu {
namespace {

ChipDescription described(const Chip &chip, const char *call) {
  if (!chip.config().description[0])
    throw Error(VNPU_INVALID_ARGUMENT, text(call, ": the chip has no description"));
  return ChipDescription::parse(chip.config().description);
}

template <size_t N> void put(char (&target)[N], const std::string &name) {
  std::memcpy(target, name.c_str(), std::min(name.size() + 1, N));
  target[N - 1] = 0;
}

} // namespace

vnpu_counters_data Session::counters() const {
  const Counters &from = chip_.region().header().counters;
  Memory::Usage usage = memory_.usage();
  vnpu_counters_data data{};
  data.bytes_to_device = from.bytesToDevice;
  data.bytes_to_host = from.bytesToHost;
  data.bytes_on_device = from.bytesOnDevice;
  data.bytes_filled = from.bytesFilled;
  data.commands = from.commands;
  data.launches = from.launches;
  data.programs = from.programs;
  data.kernel_nanoseconds = from.kernelNanoseconds;
  data.scratchpad_high_water = from.scratchpadHighWater;
  data.allocated_bytes = usage.bytes;
  data.allocated_peak = usage.peak;
  data.allocations = usage.count;
  return data;
}

vnpu_unit_data Session::unitCounters(uint32_t unit) const {
  const ChipDescription chip = described(chip_, "vnpu_unit_counters");
  if (unit >= chip.units())
    throw Error(VNPU_INVALID_ARGUMENT,
                text("vnpu_unit_counters: unit ", unit, " of ", chip.name, ", which has ", chip.units()));
  const Header &header = chip_.region().header();
  const UnitCounters &from = header.units[unit];
  vnpu_unit_data data{};
  put(data.name, chip.unitName(unit));
  data.commands = from.commands;
  data.bytes = from.bytes;
  data.busy_cycles = from.busyCycles;
  data.ordered_cycles = from.orderedCycles;
  data.waited_cycles = unit ? from.waitedCycles : header.fullQueueCycles;
  return data;
}

vnpu_memory_data Session::memoryCounters(uint32_t memory) const {
  const ChipDescription chip = described(chip_, "vnpu_memory_counters");
  if (memory >= chip.memories.size())
    throw Error(VNPU_INVALID_ARGUMENT, text("vnpu_memory_counters: memory ", memory, " of ", chip.name,
                                            ", which has ", chip.memories.size()));
  const MemoryDescription &from = chip.memories[memory];
  const Header &header = chip_.region().header();
  vnpu_memory_data data{};
  put(data.name, from.name);
  data.bytes = header.memoryBytes[memory];
  data.capacity_bytes = uint64_t(double(header.launchCycles) * from.bytesPerCycle * chip.instances(from));
  return data;
}

} // namespace vnpu
