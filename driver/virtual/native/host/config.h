// The settings of a chip, their defaults and limits.
#pragma once

#include "vnpu.h"

namespace vnpu {

// The defaults, changed by the environment. Throws InvalidArgument.
vnpu_config defaultConfig();
// Whether the program that would be the chip is one that can be run.
bool isThere();
// Throws InvalidArgument when a chip cannot be made so.
void check(const vnpu_config &config);

} // namespace vnpu
