// Python buffers that asynchronous work reads or writes.
#pragma once

#include "host.h"

#include <pybind11/pybind11.h>

namespace tpk {

struct HeldBuffer {
  void *data;
  uint64_t size;
  Keep keep;
};

// Takes a contiguous buffer of `object`. It is given back at the next `releaseFinished` after the last copy
// of `keep` is gone: work ends on threads that must not wait for the interpreter.
HeldBuffer hold(const char *call, const char *argument, pybind11::handle object, bool writable);

// Gives back the buffers whose work has ended. Call with the interpreter's lock held.
void releaseFinished();

} // namespace tpk
