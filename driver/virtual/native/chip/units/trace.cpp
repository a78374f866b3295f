#include "trace.h"

#include "../chip.h"

#include <cmath>
#include <cstdlib>

namespace vnpu {
namespace {

uint64_t whole(double cycles) { return uint64_t(std::llround(cycles)); }

} // namespace

Trace::Trace(const ChipDescription &chip) : chip_(chip) {
  if (!asked())
    return;
  const char *path = std::getenv("VNPU_TRACE");
  file_ = std::fopen(path, "ae");
  if (!file_)
    throw std::runtime_error(text("VNPU_TRACE is '", path, "', which cannot be written"));
  std::fprintf(file_, "chip %s %.17g %u %u\n", chip.name.c_str(), chip.clockMegahertz, chip.cores(),
               chip.units());
  for (const MemoryDescription &memory : chip.memories)
    std::fprintf(file_, "memory %s %.17g\n", memory.name.c_str(),
                 memory.bytesPerCycle * chip.instances(memory));
}

bool Trace::asked() {
  static const char *path = std::getenv("VNPU_TRACE");
  return path && *path;
}

void Trace::add(const std::string &kernel, int64_t programs, uint64_t start, double cycles, double needed,
                const Simulation &simulation) {
  Header &header = region.header();
  header.launchCycles += whole(cycles);
  for (const auto &core : simulation.times()) {
    header.fullQueueCycles += whole(core[0].queued);
    for (uint32_t unit = 0; unit < core.size(); ++unit) {
      UnitCounters &counters = header.units[unit];
      counters.commands += whole(core[unit].commands);
      counters.bytes += whole(core[unit].bytes);
      counters.busyCycles += whole(core[unit].busy);
      counters.orderedCycles += whole(core[unit].ordered);
      counters.waitedCycles += whole(core[0].waited[unit]);
    }
  }
  for (size_t memory = 0; memory < simulation.memoryBytes().size(); ++memory)
    header.memoryBytes[memory] += whole(simulation.memoryBytes()[memory]);
  if (file_)
    write(kernel, programs, start, cycles, needed, simulation);
}

// A line for the launch, one for each unit of each core, for each memory, for what is needed, and for each
// interval, whose times count from the start of the launch.
void Trace::write(const std::string &kernel, int64_t programs, uint64_t start, double cycles, double needed,
                  const Simulation &simulation) {
  std::fprintf(file_, "launch %s %lld %llu %.17g %d\n", kernel.c_str(), static_cast<long long>(programs),
               static_cast<unsigned long long>(start), cycles, intervals_.size() == Most);
  for (size_t core = 0; core < simulation.times().size(); ++core) {
    const auto &units = simulation.times()[core];
    for (size_t unit = 0; unit < units.size(); ++unit) {
      const UnitTimes &times = units[unit];
      std::fprintf(file_, "unit %zu %zu %.17g %.17g %.17g %.17g %.17g\n", core, unit, times.commands,
                   times.bytes, times.busy, times.ordered, unit ? units[0].waited[unit] : times.queued);
    }
  }
  for (size_t memory = 0; memory < simulation.memoryBytes().size(); ++memory)
    std::fprintf(file_, "moved %zu %.17g\n", memory, simulation.memoryBytes()[memory]);
  std::fprintf(file_, "needed %.17g\n", needed);
  for (const Interval &each : intervals_)
    std::fprintf(file_, "did %u %u %d %.10g %.10g %.10g %u %u\n", each.core, each.unit, each.line,
                 chip_.launchCycles + each.start, chip_.launchCycles + each.end, each.bytes, each.source,
                 each.target);
  intervals_.clear();
  std::fflush(file_);
}

} // namespace vnpu
