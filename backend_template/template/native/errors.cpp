#include "errors.h"

Kind kind_of(vnpu_status status) {
  switch (status) {
  case VNPU_OUT_OF_MEMORY:
    return Kind::OutOfMemory;
  case VNPU_INVALID_POINTER:
    return Kind::InvalidPointer;
  case VNPU_INVALID_MODULE:
    return Kind::InvalidModule;
  case VNPU_LAUNCH_FAILED:
    return Kind::LaunchError;
  case VNPU_DEVICE_LOST:
    return Kind::DeviceLost;
  case VNPU_ASSERTION_FAILED:
    return Kind::AssertionFailed;
  case VNPU_INVALID_ARGUMENT:
    return Kind::InvalidArgument;
  case VNPU_COPY_FAILED:
    return Kind::CopyError;
  default:
    return Kind::DeviceError;
  }
}

void check(const std::string &call, vnpu_status status) {
  if (status != VNPU_OK)
    throw Failure(kind_of(status), call, vnpu_last_error());
}
