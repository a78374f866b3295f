// The one exception type of the native parts.
#pragma once

#include "text.h"
#include "tpk_abi.h"

#include <stdexcept>

namespace tpk {

// The prefix of every message that leaves the native parts.
inline constexpr const char *DeviceName = "host CPU";

class Error : public std::runtime_error {
public:
  Error(Code code, const std::string &text) : std::runtime_error(text), code(code) {}
  Code code;
};

} // namespace tpk
