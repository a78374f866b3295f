// Python buffers that copies read or write after the call has returned.
#pragma once

#include "keep.h"

#include <cstdint>
#include <pybind11/pybind11.h>
#include <stdexcept>

namespace tpk {

struct HeldBuffer {
  void *data;
  uint64_t size;
  Keep keep;
};

/// An object is no contiguous buffer, or none that can be written; the message says which and why.
struct NoBuffer : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Takes a contiguous buffer of `object`, or throws `NoBuffer`. It is given back at the next
/// `releaseFinished` after the last copy of `keep` is gone: that may be on a thread that must not wait for
/// the interpreter.
HeldBuffer hold(pybind11::handle object, bool writable);

/// Gives back the buffers whose copies have run. Call with the interpreter's lock held.
void releaseFinished();

} // namespace tpk
