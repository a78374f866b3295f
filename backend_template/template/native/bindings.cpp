// The Python bindings of the device: the hooks, which `tpk_hooks.h` binds, and its other members.
#include "device.h"

#include <tpk_hooks.h>

namespace py = pybind11;

PYBIND11_MODULE(_native, module, py::mod_gil_not_used()) {
  module.doc() = "The device's hooks over the runtime's C API.";
  tpk::registerErrors<Failure>();

  py::class_<Properties>(module, "Properties", py::module_local())
      .def_readonly("memory_bytes", &Properties::memory_bytes)
      .def_readonly("max_scratch_bytes", &Properties::max_scratch_bytes)
      .def_readonly("core_count", &Properties::core_count);

  module.def("device_count", device_count, py::call_guard<py::gil_scoped_release>());
  py::class_<Device> device(module, "Device", py::module_local());
  device.def(py::init<>(), py::call_guard<py::gil_scoped_release>());
  device.def("properties", &Device::properties, py::call_guard<py::gil_scoped_release>());
  // Binds every member of Device that has the name and the parameters of a hook.
  tpk::bindHooks(device, [](const Device &, Kind kind, const char *hook, const std::string &reason) {
    throw Failure(kind, hook, reason);
  });
  module.attr("launch_entry") = reinterpret_cast<uint64_t>(&launch_entry);
}
