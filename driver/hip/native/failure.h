// The one exception type of the native parts.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tpk::hip {

/// The kit's exceptions. The numbers 1 to 6 are also what a native launch entry returns.
enum class Kind : int32_t {
  DeviceError = 0,
  OutOfMemory = 1,
  InvalidPointer = 2,
  InvalidModule = 3,
  LaunchError = 4,
  DeviceLost = 5,
  AssertionFailed = 6,
  InvalidArgument = 7,
  ToolchainError = 8,
};

struct Failure : std::runtime_error {
  Failure(Kind kind, const std::string &text) : std::runtime_error(text), kind(kind) {}
  Kind kind;
};

} // namespace tpk::hip
