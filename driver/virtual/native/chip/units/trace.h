// What launches did on a chip with a description: sums for the counters, and a file for profiles, which
// VNPU_TRACE names.
#pragma once

#include "simulation.h"

#include <cstdio>

namespace vnpu {

class Trace {
public:
  // Appends to the file that VNPU_TRACE names, if it names one.
  explicit Trace(const ChipDescription &chip);
  // Whether VNPU_TRACE names a file.
  static bool asked();

  // Where the simulation of a launch puts its intervals; nullptr without a file.
  std::vector<Interval> *intervals() { return file_ ? &intervals_ : nullptr; }
  static constexpr size_t Most = 1 << 20; // intervals of a launch

  // Adds a launch that began at `start`, in nanoseconds of the chip's clock. `needed`: the bytes of global
  // memory that it would move if it moved each once.
  void add(const std::string &kernel, int64_t programs, uint64_t start, double cycles, double needed,
           const Simulation &simulation);

private:
  void write(const std::string &kernel, int64_t programs, uint64_t start, double cycles, double needed,
             const Simulation &simulation);

  const ChipDescription &chip_;
  FILE *file_ = nullptr;
  std::vector<Interval> intervals_;
};

} // namespace vnpu
