// The Python bindings: convert and check arguments, release the GIL, and raise the kit's errors.
#include "device.h"
#include "tpk_hooks.h"

#include <array>
#include <cstring>
#include <limits>
#include <pybind11/stl.h>
#include <tuple>

namespace py = pybind11;
using namespace tpk::hip;
using tpk::Code;

namespace {

/// Raises the error for a bad call.
void fail(const Device &device, Code code, const char *hook, const std::string &reason) {
  throw Failure(code, device.where(hook) + ": " + reason);
}

using Binder = tpk::HookBinder<Device, decltype(&fail)>;

uint64_t get_function(Device &device, py::handle module, const std::string &name, uint32_t threads,
                      uint32_t dynamicLds, uint64_t requiredBytes,
                      const std::vector<std::pair<uint64_t, uint64_t>> &arguments) {
  auto handle =
      Binder::number<uint64_t>(fail, device, "get_function", {"module", Code::InvalidModule}, module);
  KernelFacts facts{threads, dynamicLds, requiredBytes, {}};
  for (auto [offset, size] : arguments)
    facts.arguments.push_back({offset, size});
  py::gil_scoped_release released;
  return device.get_function(handle, name, std::move(facts));
}

/// The HIP properties that the kit uses.
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

} // namespace

PYBIND11_MODULE(_hip, module, py::mod_gil_not_used()) {
  module.doc() = "Native parts of the HIP device; use triton_porting_kit.driver.hip.HipDevice.";
  tpk::registerErrors<Failure>();

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
  tpk::bindHooks(device, fail);
  Binder(device, fail)
      .numbers("adopt_event", &Device::adopt_event, tpk::Argument{"event", Code::InvalidArgument});
  device.def("get_function", get_function);
  module.attr("launch_entry") = reinterpret_cast<uint64_t>(&tpk_hip_launch);
  module.attr("cooperative_launch_entry") = reinterpret_cast<uint64_t>(&tpk_hip_launch_cooperative);

  device.def("reset", [](Device &self, bool whole) {
    tpk::Tidy tidy;
    py::gil_scoped_release released;
    self.reset(whole);
  });
}
