// The guard that every hook starts with.
#pragma once

#include "device.h"

namespace tpk::hip {

class Device::Current {
public:
  Current(const Device &device, const char *call) : hip_(device.hip_) {
    device.library_->checkProcess();
    if (device.closed_)
      throw Failure(Code::DeviceLost,
                    device.where(call) + ": the device was closed, as it is when Python ends");
    int current = device.index_;
    device.check(call, "hipGetDevice", hip_.hipGetDevice(&current));
    if (current == device.index_)
      return;
    device.check(call, "hipSetDevice", hip_.hipSetDevice(device.index_), Code::DeviceLost);
    previous_ = current;
  }
  ~Current() {
    // The hook has done its work, so failing to restore the thread's device is not an error of it.
    if (previous_ >= 0 && hip_.hipSetDevice(previous_) != api::hipSuccess)
      hip_.hipGetLastError();
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

private:
  const api::Functions &hip_;
  int previous_ = -1;
};

} // namespace tpk::hip
