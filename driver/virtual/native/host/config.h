// The settings of a chip, their defaults and limits.
#pragma once

#include "vnpu.h"

namespace vnpu {

// The defaults, changed by the environment. Throws InvalidArgument.
vnpu_config defaultConfig();
// Throws InvalidArgument when a chip cannot be made so.
void check(const vnpu_config &config);

} // namespace vnpu
