// The one exception type of the native parts.
#pragma once

#include "text.h"

#include <stdexcept>

namespace tpk {

// 1 to 8 are the codes of the native launch entry; 9 never leaves through it.
enum class Code : int32_t {
  Ok = 0,
  OutOfMemory = 1,
  InvalidPointer = 2,
  InvalidModule = 3,
  LaunchError = 4,
  DeviceLost = 5,
  AssertionFailed = 6,
  LaunchTimeout = 7,
  MemoryAccessError = 8,
  InvalidArgument = 9,
};

// What every message starts with once it leaves the native parts.
inline constexpr const char *DeviceName = "host CPU";

class Error : public std::runtime_error {
public:
  Error(Code code, const std::string &text) : std::runtime_error(text), code(code) {}
  Code code;
};

} // namespace tpk
