// Python buffers that copies read or write after the hook has returned.
#pragma once

#include "device.h"

#include <pybind11/pybind11.h>

namespace tpk::hip {

struct HeldBuffer {
  void *data;
  uint64_t size;
  Keep keep;
};

/// Takes a contiguous buffer of `object`. Throws InvalidArgument for what is none. It is given back at the
/// next `releaseFinished` after the last copy of `keep` is gone: that may be on a thread that must not wait
/// for the interpreter.
HeldBuffer hold(const char *call, const char *argument, pybind11::handle object, bool writable);

/// Gives back buffers whose copies have run. Call with the interpreter's lock held.
void releaseFinished();

} // namespace tpk::hip
