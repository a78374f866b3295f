// What a kernel does that the chip does not allow: it ends the launch.
#pragma once

#include <string>

namespace vnpu {

struct Mistake {
  std::string text;
};

} // namespace vnpu
