// The functions of tpk_npu.h, as kernels call them.
#pragma once

#include "core.h"

#include "../../../../host/native/functions.h"

namespace vnpu {

// Which core the calling thread plays. `stopped` ends its kernel at the next intrinsic.
struct Playing {
  NpuCore *core = nullptr;
  const std::atomic<bool> *stopped = nullptr;
  std::string mistake; // why the kernel was ended; empty if it was stopped
};
extern thread_local Playing playing;

// Ends the kernel that this thread runs. Does not return.
[[noreturn]] void endKernel();

// Adds the routines of tpk_npu.h to those that kernels find.
void addIntrinsics(std::vector<tpk::Routine> &routines);

} // namespace vnpu
