// The settings of a chip, their defaults and limits.
#pragma once

#include "vnpu.h"

namespace vnpu {

// The defaults, with changes from the environment. Throws InvalidArgument.
vnpu_config defaultConfig();
// Whether the chip's program can be run.
bool isThere();
// Throws InvalidArgument if a chip cannot have these settings.
void check(const vnpu_config &config);
// The settings with what a description decides. Throws InvalidArgument if it is wrong.
vnpu_config described(vnpu_config config);

} // namespace vnpu
