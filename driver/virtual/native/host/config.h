// The settings of a chip, their defaults and limits.
#pragma once

#include "vnpu.h"

namespace vnpu {

// The defaults, with changes from the environment. Throws InvalidArgument.
vnpu_config defaultConfig();
// How many chips there are; 0 if the chip's program cannot be run. Throws InvalidArgument.
uint32_t chipCount();
// Throws InvalidArgument if a chip cannot have these settings.
void check(const vnpu_config &config);
// The settings with what a description decides. Throws InvalidArgument if it is wrong.
vnpu_config described(vnpu_config config);

} // namespace vnpu
