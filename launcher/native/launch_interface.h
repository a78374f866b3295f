// The declarations that the code of one signature needs. launch_support.h includes this file and has the
// definitions. The declarations suffice to compile a signature, and are quick to read.
#include "tpk_abi.h"

#include <cstddef>

typedef struct _object PyObject;

namespace tpk {

/// A parameter's name and Triton type, for errors. `host`: a pointer must be one of the host.
struct Parameter {
  const char *name;
  const char *type;
  bool host = false;
};

/// Objects that must outlive the call of the device, because the kernel may read their memory.
class KeepAlive;

// Conversions of one value. They return false, with an exception set, if it does not fit.

/// An int, or an object with __index__, in the range of T.
template <class T> bool to_integer(PyObject *value, const Parameter &parameter, T *out);
/// The truth of an int, or of an object with __index__: a kernel may declare an int as tl.int1.
bool to_bool(PyObject *value, const Parameter &parameter, std::uint8_t *out);
/// An address as an int, None for NULL, or an object whose data_ptr() returns the address.
bool to_pointer(PyObject *value, const Parameter &parameter, std::uint64_t *out);
/// The bits of a float rounded once, to nearest even.
bool to_fp16(PyObject *value, const Parameter &parameter, std::uint16_t *out);
bool to_bf16(PyObject *value, const Parameter &parameter, std::uint16_t *out);
bool to_fp32(PyObject *value, const Parameter &parameter, float *out);
bool to_double(PyObject *value, const Parameter &parameter, double *out);

/// The members of a tuple argument, borrowed; null with an error set on failure.
PyObject *const *tuple_members(PyObject *value, const char *name, std::ptrdiff_t count, KeepAlive &keep);
/// The values that a host tensor descriptor is passed as: base, shape, strides, whether padding is NaN,
/// whether it rounds to TF32 (not in every release of Triton), shape, strides. Writes `count` borrowed
/// references: 4 * rank + 2, or 4 * rank + 3.
bool descriptor_fields(PyObject *value, const Parameter &parameter, std::ptrdiff_t count, KeepAlive &keep,
                       PyObject **out);

/// The parameters of a kernel: the names of its arguments and of its hidden arguments, each joined by ", ".
/// The arguments after the first `required_count` are constexprs, which a launch may leave out.
struct Kernel {
  std::ptrdiff_t argument_count;
  std::ptrdiff_t required_count;
  const char *argument_names;
  std::ptrdiff_t hidden_count;
  const char *const *hidden;
  const char *hidden_names;
};

/// The code of one signature.
struct Signature {
  Kernel kernel;
  std::uint64_t block_size; // in bytes
  /// Converts the arguments of a launch into the block, which is all zeros; false, with an exception set, on
  /// failure.
  bool (*pack)(PyObject *const *args, PyObject *const *hidden, KeepAlive &keep, void *block);
  LaunchFunction routine; // linked with it, or null
};

/// The signature of the module.
extern const Signature signature;

} // namespace tpk
