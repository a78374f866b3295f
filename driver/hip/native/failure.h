// The one exception type of the native parts.
#pragma once

#include "tpk_abi.h"

#include <stdexcept>
#include <string>

namespace tpk::hip {

struct Failure : std::runtime_error {
  Failure(Code code, const std::string &text) : std::runtime_error(text), code(code) {}
  Code code;
};

} // namespace tpk::hip
