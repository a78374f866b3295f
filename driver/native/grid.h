// Checks of a launch's grid.
#pragma once

#include "text.h"

#include <cstdint>

namespace tpk {

// The number of programs of a grid; 0 if one of its counts is 0. For a grid that is too large, calls `refuse`
// with a message, which it must throw.
template <typename Refuse>
int64_t countPrograms(const char *call, const std::string &kernel, const uint32_t (&grid)[3], Refuse refuse) {
  auto tooLarge = [&](const char *why) {
    refuse(text(call, ": grid (", grid[0], ", ", grid[1], ", ", grid[2], ") of kernel '", kernel, "' ", why));
  };
  for (uint32_t count : grid)
    if (count > uint32_t(INT32_MAX))
      tooLarge("has a count above 2**31 - 1");
  if (!grid[0] || !grid[1] || !grid[2])
    return 0;
  int64_t total = 1;
  for (uint32_t count : grid)
    if (__builtin_mul_overflow(total, int64_t(count), &total))
      tooLarge("has more than 2**63 - 1 programs");
  return total;
}

} // namespace tpk
