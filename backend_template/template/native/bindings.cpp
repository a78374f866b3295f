// The Python face of the device: converts and checks arguments, lets go of the interpreter's lock, and raises
// the kit's typed errors.
#include "device.h"

#include <limits>
#include <pybind11/pybind11.h>
#include <tuple>
#include <vector>

namespace py = pybind11;

namespace {

/// An argument of a hook, and what it is a mistake of where no unsigned integer can hold it.
struct Argument {
  const char *name;
  Kind mistake;
};

/// Raises TypeError for what is no integer at all.
template <typename Number> Number number(const char *hook, Argument argument, py::handle value) {
  auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!index)
    throw py::error_already_set();
  constexpr unsigned long long largest = std::numeric_limits<Number>::max();
  unsigned long long converted = PyLong_AsUnsignedLongLong(index.ptr());
  bool outside = converted > largest;
  if (converted == ~0ull && PyErr_Occurred()) {
    PyErr_Clear();
    outside = true;
  }
  if (outside)
    throw Failure(argument.mistake, hook,
                  std::string(argument.name) + " is " + py::str(index).cast<std::string>() +
                      ", not between 0 and " + std::to_string(largest));
  return static_cast<Number>(converted);
}

/// A contiguous buffer of Python's; no one can resize or free it while this lives.
class Buffer {
public:
  Buffer(const char *hook, const char *argument, py::handle object, bool writable) {
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) {
      py::error_already_set why;
      throw Failure(Kind::InvalidArgument, hook,
                    std::string(argument) + " is no contiguous " + (writable ? "writable " : "") +
                        "buffer: " + py::str(why.value()).cast<std::string>());
    }
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  void *data() const { return view_.buf; }
  uint64_t size() const { return static_cast<uint64_t>(view_.len); }

private:
  Py_buffer view_;
};

template <typename Type, typename> using Same = Type;

/// Binds a hook that takes nothing but numbers.
template <typename Result, typename... Numbers, typename... Arguments>
void bind(py::class_<Device> &type, const char *hook, Result (Device::*member)(Numbers...),
          Arguments... arguments) {
  static_assert(sizeof...(Numbers) == sizeof...(Arguments));
  type.def(hook, [=](Device &device, Same<py::object, Numbers>... values) -> Result {
    std::tuple<Numbers...> numbers{number<Numbers>(hook, arguments, values)...};
    py::gil_scoped_release released;
    return std::apply([&](Numbers... each) { return (device.*member)(each...); }, numbers);
  });
}

constexpr Argument kSize{"size", Kind::InvalidArgument};
constexpr Argument kAlignment{"alignment", Kind::InvalidArgument};
constexpr Argument kAddress{"addr", Kind::InvalidPointer};
constexpr Argument kTarget{"dst", Kind::InvalidPointer};
constexpr Argument kSource{"src", Kind::InvalidPointer};
constexpr Argument kValue{"value", Kind::InvalidArgument};
constexpr Argument kStream{"stream", Kind::InvalidArgument};
constexpr Argument kEvent{"event", Kind::InvalidArgument};
constexpr Argument kModule{"module", Kind::InvalidModule};

void memcpy_htod(Device &device, py::handle target, py::handle source, py::handle stream) {
  auto dst = number<uint64_t>("memcpy_htod", kTarget, target);
  auto queue = number<uint64_t>("memcpy_htod", kStream, stream);
  Buffer src("memcpy_htod", "src", source, false);
  py::gil_scoped_release released;
  device.memcpy_htod(dst, src.data(), src.size(), queue);
}

void memcpy_dtoh(Device &device, py::handle target, py::handle source, py::handle stream) {
  auto src = number<uint64_t>("memcpy_dtoh", kSource, source);
  auto queue = number<uint64_t>("memcpy_dtoh", kStream, stream);
  Buffer dst("memcpy_dtoh", "dst", target, true);
  py::gil_scoped_release released;
  device.memcpy_dtoh(dst.data(), src, dst.size(), queue);
}

uint64_t load_module(Device &device, py::handle binary, const std::string &name) {
  Buffer code("load_module", "binary", binary, false);
  py::gil_scoped_release released;
  return device.load_module(code.data(), code.size(), name);
}

uint64_t get_function(Device &device, py::handle module, const std::string &name) {
  auto handle = number<uint64_t>("get_function", kModule, module);
  py::gil_scoped_release released;
  return device.get_function(handle, name);
}

void launch(Device &device, py::handle function, py::handle x, py::handle y, py::handle z, py::handle stream,
            py::handle args) {
  constexpr Argument count{"a count of the grid", Kind::LaunchError};
  auto handle = number<uint64_t>("launch", {"function", Kind::LaunchError}, function);
  auto gx = number<uint32_t>("launch", count, x);
  auto gy = number<uint32_t>("launch", count, y);
  auto gz = number<uint32_t>("launch", count, z);
  auto queue = number<uint64_t>("launch", {"stream", Kind::LaunchError}, stream);
  Buffer block("launch", "args", args, false);
  py::gil_scoped_release released;
  device.launch(handle, gx, gy, gz, queue, block.data(), block.size());
}

/// The kit's exceptions, in the order of Kind. They stay: a failure may be raised while the interpreter ends.
const std::vector<py::object> &error_types() {
  static const auto *types = [] {
    auto errors = py::module_::import("triton_porting_kit.errors");
    auto *found = new std::vector<py::object>;
    for (const char *name : {"DeviceError", "OutOfMemory", "InvalidPointer", "InvalidModule", "LaunchError",
                             "DeviceLost", "AssertionFailed", "InvalidArgument", "CopyError"})
      found->push_back(errors.attr(name));
    return found;
  }();
  return *types;
}

} // namespace

PYBIND11_MODULE(_native, module, py::mod_gil_not_used()) {
  module.doc() = "The device's hooks over the runtime's C API.";
  error_types();
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown)
        std::rethrow_exception(thrown);
    } catch (const Failure &failure) {
      py::set_error(error_types()[static_cast<size_t>(failure.kind)], failure.what());
    }
  });

  py::class_<Properties>(module, "Properties", py::module_local())
      .def_readonly("memory_bytes", &Properties::memory_bytes)
      .def_readonly("max_scratch_bytes", &Properties::max_scratch_bytes)
      .def_readonly("core_count", &Properties::core_count);

  module.def("device_count", device_count, py::call_guard<py::gil_scoped_release>());
  py::class_<Device> device(module, "Device", py::module_local());
  device.def(py::init<>(), py::call_guard<py::gil_scoped_release>());
  bind(device, "properties", &Device::properties);

  bind(device, "memalloc", &Device::memalloc, kSize, kAlignment);
  bind(device, "memfree", &Device::memfree, kAddress);
  device.def("memcpy_htod", memcpy_htod);
  device.def("memcpy_dtoh", memcpy_dtoh);
  bind(device, "memcpy_dtod", &Device::memcpy_dtod, kTarget, kSource, kSize, kStream);
  bind(device, "memset", &Device::memset, kTarget, kValue, kSize, kStream);

  bind(device, "create_stream", &Device::create_stream);
  bind(device, "destroy_stream", &Device::destroy_stream, kStream);
  bind(device, "synchronize", &Device::synchronize, kStream);
  bind(device, "synchronize_all", &Device::synchronize_all);

  bind(device, "create_event", &Device::create_event);
  bind(device, "destroy_event", &Device::destroy_event, kEvent);
  bind(device, "record_event", &Device::record_event, kEvent, kStream);
  bind(device, "wait_event", &Device::wait_event, kStream, kEvent);
  bind(device, "synchronize_event", &Device::synchronize_event, kEvent);
  bind(device, "elapsed_time", &Device::elapsed_time, kEvent, kEvent);

  device.def("load_module", load_module);
  bind(device, "unload_module", &Device::unload_module, kModule);
  device.def("get_function", get_function);
  device.def("launch", launch);
  device.def_property_readonly("context", [](Device &self) { return reinterpret_cast<uint64_t>(&self); });
  module.attr("launch_entry") = reinterpret_cast<uint64_t>(&launch_entry);

  bind(device, "reset", &Device::reset);
  bind(device, "close", &Device::close);
}
