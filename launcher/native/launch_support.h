// The code that all launch routines share: it reads Triton's launch arguments, converts the kernel's, and
// calls the hooks and the device's launch entry. It uses the plain CPython API and C++17, and has no state
// but interned names.
//
// Included once in a module: by the packed launcher, and by generated code or the object linked with it.
// Values are refused by triton_porting_kit.launcher.values, which writes the error.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "launch_interface.h"

#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace tpk {

// --- the device's side
// --------------------------------------------------------------------------------------

struct Entry {
  LaunchFunction function;
  void *context;
};

// --- Python objects
// -----------------------------------------------------------------------------------------

/// Owns one reference.
class Ref {
public:
  explicit Ref(PyObject *object = nullptr) : object_(object) {}
  ~Ref() { Py_XDECREF(object_); }
  Ref(const Ref &) = delete;
  Ref &operator=(const Ref &) = delete;
  PyObject *get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

private:
  PyObject *object_;
};

class KeepAlive {
public:
  KeepAlive() = default;
  ~KeepAlive() {
    for (PyObject *object : objects_)
      Py_DECREF(object);
  }
  KeepAlive(const KeepAlive &) = delete;
  KeepAlive &operator=(const KeepAlive &) = delete;

  /// Takes ownership of a new reference (or null) and returns it.
  PyObject *take(PyObject *object) {
    if (object)
      objects_.push_back(object);
    return object;
  }

private:
  std::vector<PyObject *> objects_;
};

/// Attribute names that launches look up.
struct Names {
  PyObject *data_ptr, *is_neg, *is_cpu, *base, *shape, *strides, *padding, *round_f32_to_tf32;

  bool intern() {
    data_ptr = PyUnicode_InternFromString("data_ptr");
    is_neg = PyUnicode_InternFromString("is_neg");
    is_cpu = PyUnicode_InternFromString("is_cpu");
    base = PyUnicode_InternFromString("base");
    shape = PyUnicode_InternFromString("shape");
    strides = PyUnicode_InternFromString("strides");
    padding = PyUnicode_InternFromString("padding");
    round_f32_to_tf32 = PyUnicode_InternFromString("round_f32_to_tf32");
    return data_ptr && is_neg && is_cpu && base && shape && strides && padding && round_f32_to_tf32;
  }
};

inline Names names;

/// Calls the Python function `check`, which raises if something must be refused. Returns whether it has not
/// raised.
inline bool ask(const char *check, PyObject *arguments) {
  Ref module(arguments ? PyImport_ImportModule("triton_porting_kit.launcher.values") : nullptr);
  if (!module)
    return false;
  Ref function(PyObject_GetAttrString(module.get(), check));
  return function && Ref(PyObject_CallObject(function.get(), arguments));
}

/// Calls the Python function `check` to raise the error for a refused value. Always returns false. An
/// exception that the value itself raised is kept.
inline bool refuse(const char *check, const char *format, ...) {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError) &&
      !PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_OverflowError))
    return false;
  PyErr_Clear();
  va_list values;
  va_start(values, format);
  Ref arguments(Py_VaBuildValue(format, values));
  va_end(values);
  if (ask(check, arguments.get()))
    PyErr_Format(PyExc_RuntimeError, "a launch argument changed while %s looked at it", check);
  return false;
}

// --- converting one value
// -----------------------------------------------------------------------------------

inline bool refuse_value(PyObject *value, const Parameter &parameter) {
  return refuse("encode", "(ssO)", parameter.name, parameter.type, value);
}

template <class T> bool to_integer(PyObject *value, const Parameter &parameter, T *out) {
  Ref index(PyLong_Check(value) ? Py_NewRef(value) : PyNumber_Index(value));
  if (!index)
    return refuse_value(value, parameter);
  if constexpr (std::is_signed_v<T>) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
    if (overflow || number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max())
      return refuse_value(value, parameter);
    *out = static_cast<T>(number);
  } else {
    const unsigned long long number = PyLong_AsUnsignedLongLong(index.get());
    if ((number == ~0ULL && PyErr_Occurred()) || number > std::numeric_limits<T>::max())
      return refuse_value(value, parameter);
    *out = static_cast<T>(number);
  }
  return true;
}

bool to_bool(PyObject *value, const Parameter &parameter, std::uint8_t *out) {
  if (value == Py_True || value == Py_False) {
    *out = value == Py_True;
    return true;
  }
  Ref index(PyLong_Check(value) ? Py_NewRef(value) : PyNumber_Index(value));
  if (!index)
    return refuse_value(value, parameter);
  *out = PyObject_IsTrue(index.get()) > 0;
  return true;
}

/// A value type's method is_neg(), which torch's tensors have; borrowed, or null.
inline PyObject *is_neg_method(PyObject *value) { return _PyType_Lookup(Py_TYPE(value), names.is_neg); }

/// Whether a tensor's memory must be checked further: it may hold the negated elements, not exist, or be that
/// of another device.
inline bool is_suspect(PyObject *value, std::uint64_t address, bool host) {
  if (address == 0)
    return true;
  PyObject *method = is_neg_method(value);
  if (!method)
    return false;
  if (host && Ref(PyObject_GetAttr(value, names.is_cpu)).get() != Py_True)
    return true;
  Ref negative(PyObject_CallOneArg(method, value));
  return negative.get() != Py_False;
}

/// Raises for a tensor without plain memory; keeps any other error.
inline bool check_tensor(PyObject *value, const Parameter &parameter) {
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  Ref arguments(
      Py_BuildValue("ssOO", parameter.name, parameter.type, value, parameter.host ? Py_True : Py_False));
  const bool plain = ask("check_tensor", arguments.get());
  if (plain && type) {
    PyErr_Restore(type, error, trace);
    return false;
  }
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(trace);
  return plain;
}

bool to_pointer(PyObject *value, const Parameter &parameter, std::uint64_t *out) {
  if (value == Py_None) {
    *out = 0;
    return true;
  }
  if (PyLong_Check(value))
    return to_integer(value, parameter, out);
  Ref address(PyObject_CallMethodNoArgs(value, names.data_ptr));
  if (!address) {
    // If an object's data_ptr() raises, its exception is kept. An object without data_ptr() is refused here.
    if (PyErr_ExceptionMatches(PyExc_AttributeError) && !PyObject_HasAttr(value, names.data_ptr))
      return refuse_value(value, parameter);
    return check_tensor(value, parameter);
  }
  if (!PyLong_Check(address.get()))
    return refuse_value(value, parameter);
  *out = PyLong_AsUnsignedLongLong(address.get());
  if (*out == ~0ULL && PyErr_Occurred())
    return refuse_value(address.get(), parameter);
  return !is_suspect(value, *out, parameter.host) || check_tensor(value, parameter);
}

bool to_double(PyObject *value, const Parameter &parameter, double *out) {
  if (PyFloat_CheckExact(value)) {
    *out = PyFloat_AS_DOUBLE(value);
    return true;
  }
  *out = PyFloat_AsDouble(value);
  return !(*out == -1.0 && PyErr_Occurred()) || refuse_value(value, parameter);
}

/// The bits of `value` in a format of sizeof(Bits) bytes, rounded once, to nearest even; overflow gives
/// infinity. It uses integers only, because the caller's floating-point environment is unknown.
template <class Bits, int ExponentBits, int MantissaBits> Bits round_to(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint64_t mantissa_mask = (1ULL << 52) - 1;
  const auto sign = static_cast<Bits>(bits >> 63 << (8 * sizeof(Bits) - 1));
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  std::uint64_t mantissa = bits & mantissa_mask;
  constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  constexpr std::uint64_t infinity = ((1ULL << ExponentBits) - 1) << MantissaBits;

  if (exponent == 0x7ff) {
    if (mantissa == 0)
      return sign | static_cast<Bits>(infinity);
    constexpr std::uint64_t quiet = 1ULL << (MantissaBits - 1);
    return sign | static_cast<Bits>(infinity | quiet | mantissa >> (52 - MantissaBits));
  }
  if (exponent == 0) // a double's subnormals are far below half of the smallest number
    return sign;
  int target = exponent - 1023 + bias; // the biased exponent in the 16-bit format
  int shift = 52 - MantissaBits;
  mantissa |= 1ULL << 52;
  if (target < 1) { // subnormal: all share the smallest exponent
    shift += 1 - target;
    target = 1;
  }
  if (shift > 54)
    return sign;
  const std::uint64_t half = 1ULL << (shift - 1);
  const std::uint64_t rest = mantissa & ((1ULL << shift) - 1);
  std::uint64_t steps = mantissa >> shift;
  if (rest > half || (rest == half && (steps & 1)))
    ++steps;
  // A normal number's `steps` include the hidden bit, which adds one to the exponent; so does a carry.
  const std::uint64_t result = steps + (static_cast<std::uint64_t>(target - 1) << MantissaBits);
  return sign | static_cast<Bits>(result < infinity ? result : infinity);
}

bool to_fp16(PyObject *value, const Parameter &parameter, std::uint16_t *out) {
  double number;
  if (!to_double(value, parameter, &number))
    return false;
  *out = round_to<std::uint16_t, 5, 10>(number);
  return true;
}

bool to_bf16(PyObject *value, const Parameter &parameter, std::uint16_t *out) {
  double number;
  if (!to_double(value, parameter, &number))
    return false;
  *out = round_to<std::uint16_t, 8, 7>(number);
  return true;
}

bool to_fp32(PyObject *value, const Parameter &parameter, float *out) {
  double number;
  if (!to_double(value, parameter, &number))
    return false;
  const auto bits = round_to<std::uint32_t, 8, 23>(number);
  std::memcpy(out, &bits, sizeof bits);
  return true;
}

// --- arguments that hold several values
// ---------------------------------------------------------------------

PyObject *const *tuple_members(PyObject *value, const char *name, Py_ssize_t count, KeepAlive &keep) {
  if (PyTuple_Check(value) || PyList_Check(value)) {
    // A list is copied, because other threads may change it.
    PyObject *members = keep.take(PySequence_Tuple(value));
    if (!members)
      return nullptr;
    if (PyTuple_GET_SIZE(members) == count)
      return PySequence_Fast_ITEMS(members);
  }
  refuse("tuple_members", "(snO)", name, count, value);
  return nullptr;
}

bool descriptor_fields(PyObject *value, const Parameter &parameter, Py_ssize_t count, KeepAlive &keep,
                       PyObject **out) {
  const Py_ssize_t rank = count / 4;
  const auto refuse_descriptor = [&] {
    return refuse("descriptor_fields", "(ssnO)", parameter.name, parameter.type, count, value);
  };
  PyObject *base = keep.take(PyObject_GetAttr(value, names.base));
  PyObject *shape = base ? keep.take(PyObject_GetAttr(value, names.shape)) : nullptr;
  PyObject *strides = shape ? keep.take(PyObject_GetAttr(value, names.strides)) : nullptr;
  PyObject *padding = strides ? keep.take(PyObject_GetAttr(value, names.padding)) : nullptr;
  if (!padding)
    return refuse_descriptor();
  const auto copy = [&](PyObject *sizes, PyObject **first, PyObject **second) {
    if (!PyTuple_Check(sizes) && !PyList_Check(sizes))
      return refuse_descriptor();
    PyObject *items = keep.take(PySequence_Tuple(sizes));
    if (!items)
      return false;
    if (PyTuple_GET_SIZE(items) != rank)
      return refuse_descriptor();
    for (Py_ssize_t i = 0; i < rank; ++i)
      first[i] = second[i] = PyTuple_GET_ITEM(items, i);
    return true;
  };
  PyObject **flags = out + 1 + 2 * rank;
  PyObject **again = out + count - 2 * rank;
  if (!copy(shape, out + 1, again) || !copy(strides, out + 1 + rank, again + rank))
    return false;
  out[0] = base;
  flags[0] =
      PyUnicode_Check(padding) && PyUnicode_CompareWithASCIIString(padding, "nan") == 0 ? Py_True : Py_False;
  if (flags + 1 == again)
    return true;
  // Descriptors that are not Triton's own may lack the flag.
  PyObject *rounds = keep.take(PyObject_GetAttr(value, names.round_f32_to_tf32));
  if (!rounds) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
      return false;
    PyErr_Clear();
  }
  const int truth = rounds ? PyObject_IsTrue(rounds) : 0;
  if (truth < 0)
    return false;
  flags[1] = truth ? Py_True : Py_False;
  return true;
}

// --- the launch
// ---------------------------------------------------------------------------------------------

/// The arguments of one launch, in the order in which Triton passes them.
enum Leading : Py_ssize_t {
  kGridX,
  kGridY,
  kGridZ,
  kStream,
  kFunction,
  kKernelMetadata,
  kLaunchMetadata,
  kEnterHook,
  kExitHook,
  kLeadingCount
};

inline bool to_handle(PyObject *value, const char *name, std::uint64_t *out) {
  Ref index(PyNumber_Index(value));
  if (index) {
    *out = PyLong_AsUnsignedLongLong(index.get());
    if (!(*out == ~0ULL && PyErr_Occurred()))
      return true;
  }
  return refuse("check_handle", "(sO)", name, value);
}

/// Three counts from 0 to 2**31 - 1, whose product fits 63 bits.
inline bool to_grid(PyObject *const *args, std::uint32_t grid[3]) {
  __extension__ unsigned __int128 programs = 1;
  for (int axis = 0; axis < 3; ++axis) {
    Ref index(PyNumber_Index(args[axis]));
    int overflow = 0;
    const long long count = index ? PyLong_AsLongLongAndOverflow(index.get(), &overflow) : -1;
    if (overflow || count < 0 || count > std::numeric_limits<std::int32_t>::max())
      return refuse("check_grid", "(OOO)", args[0], args[1], args[2]);
    grid[axis] = static_cast<std::uint32_t>(count);
    programs *= static_cast<std::uint64_t>(count);
  }
  return programs < static_cast<std::uint64_t>(1) << 63 ||
         refuse("check_grid", "(OOO)", args[0], args[1], args[2]);
}

inline bool call_hook(PyObject *hook, PyObject *metadata) {
  if (hook == Py_None)
    return true;
  Ref result(PyObject_CallOneArg(hook, metadata));
  return static_cast<bool>(result);
}

/// Calls the device without the GIL, and turns its error code into an exception.
inline bool call_entry(const Entry &entry, std::uint64_t stream, std::uint64_t function,
                       const std::uint32_t grid[3], const void *block, std::uint64_t size) {
  char message[1024];
  message[0] = '\0';
  std::int32_t code;
  Py_BEGIN_ALLOW_THREADS;
  code = entry.function(entry.context, stream, function, grid[0], grid[1], grid[2], block, size, message,
                        sizeof message);
  Py_END_ALLOW_THREADS;
  if (code == 0)
    return true;
  if (PyErr_Occurred()) // raised by a signal handler that ran during the call
    return false;
  message[sizeof message - 1] = '\0';
  Ref text(PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace"));
  return text && refuse("refuse_launch", "(iO)", static_cast<int>(code), text.get());
}

/// Finds the values of the hidden arguments, which a launch passes as keywords.
inline bool hidden_arguments(const Kernel &kernel, PyObject *keywords, PyObject *const *values,
                             PyObject **out) {
  const Py_ssize_t given = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  Py_ssize_t found = 0;
  for (Py_ssize_t i = 0; i < kernel.hidden_count; ++i)
    for (Py_ssize_t j = 0; j < given; ++j)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, j), kernel.hidden[i]) == 0) {
        out[i] = values[j];
        ++found;
        break;
      }
  if (found == kernel.hidden_count && found == given)
    return true;
  Ref list(keywords ? PySequence_List(keywords) : PyList_New(0));
  return list && refuse("check_hidden", "(sO)", kernel.hidden_names, list.get());
}

/// One launch, in the order of Triton's own launchers: the leading arguments, the enter hook, the kernel's
/// arguments, the device (unless the grid is empty), the exit hook. Any failure ends the launch.
///
/// `pack(args, hidden, keep)` fills `block`, which has `size` bytes.
template <class Pack>
PyObject *launch(const Entry &entry, const Kernel &kernel, PyObject *const *args, Py_ssize_t count,
                 PyObject *keywords, const void *block, std::uint64_t size, const Pack &pack) {
  if (count < kLeadingCount) {
    refuse("check_leading", "(n)", count);
    return nullptr;
  }
  std::uint32_t grid[3];
  std::uint64_t stream, function;
  if (!to_grid(args, grid) || !to_handle(args[kStream], "stream", &stream) ||
      !to_handle(args[kFunction], "function", &function))
    return nullptr;
  const Py_ssize_t given = count - kLeadingCount;
  if (given < kernel.required_count || given > kernel.argument_count) {
    refuse("check_count", "(snnn)", kernel.argument_names, kernel.argument_count, kernel.required_count,
           given);
    return nullptr;
  }
  std::vector<PyObject *> hidden(static_cast<std::size_t>(kernel.hidden_count));
  if ((keywords || kernel.hidden_count) && !hidden_arguments(kernel, keywords, args + count, hidden.data()))
    return nullptr;

  if (!call_hook(args[kEnterHook], args[kLaunchMetadata]))
    return nullptr;
  KeepAlive keep;
  if (!pack(args + kLeadingCount, hidden.data(), keep))
    return nullptr;
  const bool empty = grid[0] == 0 || grid[1] == 0 || grid[2] == 0;
  if (!empty && !call_entry(entry, stream, function, grid, block, size))
    return nullptr;
  if (!call_hook(args[kExitHook], args[kLaunchMetadata]))
    return nullptr;
  Py_RETURN_NONE;
}

} // namespace tpk
