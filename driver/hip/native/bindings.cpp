// The Python face: converts and checks arguments, lets go of the interpreter's lock, and raises the kit's
// errors.
#include "buffers.h"
#include "device.h"
#include "text.h"

#include <array>
#include <cstring>
#include <limits>
#include <pybind11/stl.h>
#include <tuple>

namespace py = pybind11;
using namespace tpk::hip;
using tpk::Code;

namespace {

/// An argument of a hook, and what it is a mistake of where no unsigned integer can hold it.
struct Argument {
  const char *name;
  Code mistake;
};

constexpr Argument kSize{"size", Code::InvalidArgument};
constexpr Argument kAddress{"addr", Code::InvalidPointer};
constexpr Argument kTarget{"dst", Code::InvalidPointer};
constexpr Argument kSource{"src", Code::InvalidPointer};
constexpr Argument kStream{"stream", Code::InvalidArgument};
constexpr Argument kEvent{"event", Code::InvalidArgument};
constexpr Argument kModule{"module", Code::InvalidModule};

/// Raises TypeError for what is no integer at all.
template <typename Number>
Number number(const Device &device, const char *hook, Argument argument, py::handle value) {
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
    throw Failure(argument.mistake,
                  tpk::text(device.where(hook), ": ", argument.name, " ", py::str(index).cast<std::string>(),
                            " is not between 0 and ", largest));
  return static_cast<Number>(converted);
}

template <typename Type, typename> using Same = Type;

tpk::HeldBuffer hold(const Device &device, const char *hook, const char *argument, py::handle object,
                     bool writable) {
  try {
    return tpk::hold(object, writable);
  } catch (const tpk::NoBuffer &mistake) {
    throw Failure(Code::InvalidArgument,
                  tpk::text(device.where(hook), ": ", argument, " of ", mistake.what()));
  }
}

/// Gives back, at the end of a hook, the buffers of copies that have run.
struct Tidy {
  ~Tidy() { tpk::releaseFinished(); }
};

/// Binds a hook that takes nothing but numbers.
template <typename Result, typename... Numbers, typename... Arguments>
void bind(py::class_<Device> &type, const char *hook, Result (Device::*member)(Numbers...),
          Arguments... arguments) {
  static_assert(sizeof...(Numbers) == sizeof...(Arguments));
  type.def(hook, [=](Device &device, Same<py::object, Numbers>... values) -> Result {
    std::tuple<Numbers...> numbers{number<Numbers>(device, hook, arguments, values)...};
    Tidy tidy;
    py::gil_scoped_release released;
    return std::apply([&](Numbers... each) { return (device.*member)(each...); }, numbers);
  });
}

uint64_t memalloc(Device &device, py::handle sizeObject, py::handle alignment) {
  py::int_ zero(0);
  int negative = PyObject_RichCompareBool(sizeObject.ptr(), zero.ptr(), Py_LT);
  if (negative < 0)
    throw py::error_already_set();
  // Too large for 64 bits is too large for the memory; below zero is a mistake of another kind.
  auto size = number<uint64_t>(device, "memalloc",
                               {"size", negative ? Code::InvalidArgument : Code::OutOfMemory}, sizeObject);
  auto boundary = number<uint64_t>(device, "memalloc", {"alignment", Code::InvalidArgument}, alignment);
  py::gil_scoped_release released;
  return device.memalloc(size, boundary);
}

void memcpyHtod(Device &device, py::handle target, py::handle source, py::handle stream) {
  auto dst = number<uint64_t>(device, "memcpy_htod", kTarget, target);
  auto queue = number<uint64_t>(device, "memcpy_htod", kStream, stream);
  Tidy tidy;
  auto held = hold(device, "memcpy_htod", "src", source, false);
  py::gil_scoped_release released;
  device.memcpyHtod(dst, held.data, held.size, queue, std::move(held.keep));
}

void memcpyDtoh(Device &device, py::handle target, py::handle source, py::handle stream) {
  auto src = number<uint64_t>(device, "memcpy_dtoh", kSource, source);
  auto queue = number<uint64_t>(device, "memcpy_dtoh", kStream, stream);
  Tidy tidy;
  auto held = hold(device, "memcpy_dtoh", "dst", target, true);
  py::gil_scoped_release released;
  device.memcpyDtoh(held.data, src, held.size, queue, std::move(held.keep));
}

void fill(Device &device, py::handle target, py::handle value, py::handle size, py::handle stream) {
  auto dst = number<uint64_t>(device, "memset", kTarget, target);
  auto byte = number<uint8_t>(device, "memset", {"value", Code::InvalidArgument}, value);
  auto bytes = number<uint64_t>(device, "memset", kSize, size);
  auto queue = number<uint64_t>(device, "memset", kStream, stream);
  py::gil_scoped_release released;
  device.memset(dst, byte, bytes, queue);
}

uint64_t loadModule(Device &device, const py::bytes &binary, const std::string &name) {
  std::string image = binary;
  py::gil_scoped_release released;
  return device.loadModule(std::move(image), name);
}

uint64_t getFunction(Device &device, py::handle module, const std::string &name, uint32_t threads,
                     uint32_t dynamicLds, uint64_t requiredBytes,
                     const std::vector<std::pair<uint64_t, uint64_t>> &arguments) {
  auto handle = number<uint64_t>(device, "get_function", kModule, module);
  KernelFacts facts{threads, dynamicLds, requiredBytes, {}};
  for (auto [offset, size] : arguments)
    facts.arguments.push_back({offset, size});
  py::gil_scoped_release released;
  return device.getFunction(handle, name, std::move(facts));
}

void launch(Device &device, py::handle function, const std::array<py::object, 3> &grid, py::handle stream,
            const py::bytes &args) {
  uint32_t counts[3];
  for (int axis = 0; axis < 3; ++axis)
    counts[axis] = number<uint32_t>(device, "launch", {"a count of the grid", Code::LaunchError}, grid[axis]);
  auto handle = number<uint64_t>(device, "launch", {"function", Code::LaunchError}, function);
  auto queue = number<uint64_t>(device, "launch", {"stream", Code::LaunchError}, stream);
  std::string_view block = args;
  py::gil_scoped_release released;
  device.launch(queue, handle, counts, block.data(), block.size(), false);
}

/// What of HIP's properties the kit has a use for.
py::dict properties(const tpk::hip::api::hipDeviceProp_tR0600 &found) {
  using namespace py::literals;
  auto words = [](const char *text, size_t size) { return py::str(text, strnlen(text, size)); };
  return py::dict("name"_a = words(found.name, sizeof found.name),
                  "target_id"_a = words(found.gcnArchName, sizeof found.gcnArchName),
                  "memory_bytes"_a = found.totalGlobalMem, "core_count"_a = found.multiProcessorCount,
                  "lds_bytes"_a = found.sharedMemPerBlock,
                  "max_threads_per_block"_a = found.maxThreadsPerBlock, "warp_size"_a = found.warpSize,
                  "clock_rate_khz"_a = found.clockRate, "memory_clock_rate_khz"_a = found.memoryClockRate,
                  "memory_bus_width_bits"_a = found.memoryBusWidth,
                  "registers_per_block"_a = found.regsPerBlock,
                  "max_threads_per_core"_a = found.maxThreadsPerMultiProcessor,
                  "cooperative_launch"_a = found.cooperativeLaunch != 0);
}

/// The kit's exceptions by Code. They stay: a failure may be raised while the interpreter ends.
const std::vector<py::object> &errorTypes() {
  static const auto *types = [] {
    auto errors = py::module_::import("triton_porting_kit.errors");
    auto *found = new std::vector<py::object>;
    for (const char *name : tpk::ErrorNames)
      found->push_back(errors.attr(name));
    return found;
  }();
  return *types;
}

} // namespace

PYBIND11_MODULE(_hip, module, py::mod_gil_not_used()) {
  module.doc() = "Native parts of the HIP device; use triton_porting_kit.driver.hip.HipDevice.";
  errorTypes();
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown)
        std::rethrow_exception(thrown);
    } catch (const Failure &failure) {
      py::set_error(errorTypes()[size_t(failure.code)], failure.what());
    }
  });

  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<Library, std::shared_ptr<Library>>(module, "Library", py::module_local())
      .def(py::init<const std::string &>(), py::arg("path"), Unlocked())
      .def_property_readonly("path", &Library::path)
      .def("version", &Library::version, Unlocked())
      .def("device_count", &Library::deviceCount, Unlocked())
      .def("properties", [](const Library &library, int device) {
        tpk::hip::api::hipDeviceProp_tR0600 found;
        {
          py::gil_scoped_release released;
          found = library.properties(device);
        }
        return properties(found);
      });

  py::class_<Device> device(module, "Device", py::module_local());
  device.def(py::init([](std::shared_ptr<Library> library, int index) {
               return std::make_unique<Device>(std::move(library), index);
             }),
             py::arg("library"), py::arg("index"), Unlocked());
  device.def("properties", [](const Device &self) { return properties(self.properties()); });
  device.def("memalloc", memalloc);
  bind(device, "memfree", &Device::memfree, kAddress);
  device.def("memcpy_htod", memcpyHtod);
  device.def("memcpy_dtoh", memcpyDtoh);
  bind(device, "memcpy_dtod", &Device::memcpyDtod, kTarget, kSource, kSize, kStream);
  device.def("memset", fill);

  bind(device, "create_stream", &Device::createStream);
  bind(device, "destroy_stream", &Device::destroyStream, kStream);
  bind(device, "synchronize", &Device::synchronize, kStream);
  bind(device, "synchronize_all", &Device::synchronizeAll);

  bind(device, "create_event", &Device::createEvent);
  bind(device, "adopt_event", &Device::adoptEvent, kEvent);
  bind(device, "destroy_event", &Device::destroyEvent, kEvent);
  bind(device, "record_event", &Device::recordEvent, kEvent, kStream);
  bind(device, "wait_event", &Device::waitEvent, kStream, kEvent);
  bind(device, "synchronize_event", &Device::synchronizeEvent, kEvent);
  bind(device, "elapsed_time", &Device::elapsedTime, kEvent, kEvent);

  device.def("load_module", loadModule);
  bind(device, "unload_module", &Device::unloadModule, kModule);
  device.def("get_function", getFunction);
  device.def("launch", launch);
  device.def_property_readonly("context", [](Device &self) { return reinterpret_cast<uint64_t>(&self); });
  module.attr("launch_entry") = reinterpret_cast<uint64_t>(&tpk_hip_launch);
  module.attr("cooperative_launch_entry") = reinterpret_cast<uint64_t>(&tpk_hip_launch_cooperative);

  device.def("reset", [](Device &self, bool whole) {
    Tidy tidy;
    py::gil_scoped_release released;
    self.reset(whole);
  });
  device.def("close", [](Device &self) {
    Tidy tidy;
    py::gil_scoped_release released;
    self.close();
  });
}
