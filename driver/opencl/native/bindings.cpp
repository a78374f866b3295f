// The Python bindings: handles as integers, OpenCL's functions as addresses.
#include "launches.h"
#include "tpk_hooks.h"

#include <pybind11/stl.h>

namespace py = pybind11;
using namespace tpk::opencl;

namespace {

Handle pointer(uint64_t handle) { return reinterpret_cast<Handle>(handle); }

template <typename Function> void look(const py::dict &addresses, const char *name, Function *function) {
  *function = reinterpret_cast<Function>(addresses[name].cast<uint64_t>());
}

using Meanings = std::unordered_map<int32_t, std::pair<int32_t, std::string>>;

std::shared_ptr<Functions> functions(const py::dict &addresses, const Meanings &meanings) {
  auto found = std::make_shared<Functions>();
  for (auto &[result, meaning] : meanings)
    found->meanings[result] = {tpk::Code(meaning.first), meaning.second};
#define TPK_LOOK(name) look(addresses, #name, &found->name)
  TPK_LOOK(clCreateBuffer);
  TPK_LOOK(clReleaseMemObject);
  TPK_LOOK(clReleaseKernel);
  TPK_LOOK(clSetKernelArg);
  TPK_LOOK(clSetKernelExecInfo);
  TPK_LOOK(clEnqueueNDRangeKernel);
  TPK_LOOK(clFlush);
#undef TPK_LOOK
  return found;
}

/// An allocation as Python has it: its start, the buffer's handle or 0, and the bytes that it takes.
py::tuple plain(const Allocation &allocation) {
  return py::make_tuple(allocation.start, reinterpret_cast<uint64_t>(allocation.buffer), allocation.whole);
}

py::list plain(const std::vector<std::pair<uint64_t, Allocation>> &allocations) {
  py::list listed;
  for (auto &[address, allocation] : allocations)
    listed.append(plain(allocation));
  return listed;
}

} // namespace

PYBIND11_MODULE(_opencl, module, py::mod_gil_not_used()) {
  module.doc() = "Native launches of OpenCL kernels; use triton_porting_kit.driver.opencl.OpenCLDevice.";
  tpk::registerErrors<Failure>();
  using Unlocked = py::call_guard<py::gil_scoped_release>;

  py::class_<Functions, std::shared_ptr<Functions>>(module, "Functions", py::module_local())
      .def(py::init(&functions), py::arg("addresses"), py::arg("meanings"));
  py::class_<Kernel, std::shared_ptr<Kernel>>(module, "Kernel", py::module_local())
      .def(py::init([](std::shared_ptr<Functions> functions, uint64_t handle, const std::string &name,
                       std::vector<uint64_t> pointers, uint64_t scratch, bool canFail, bool buffers,
                       uint64_t workItems, uint64_t localBytes) {
             auto kernel = std::make_shared<Kernel>();
             kernel->functions = std::move(functions);
             kernel->handle = pointer(handle);
             kernel->name = name;
             for (uint64_t offset : pointers)
               kernel->largestBlock = std::max(kernel->largestBlock, offset + 8);
             kernel->pointers = std::move(pointers);
             kernel->stride = (scratch + 63) / 64 * 64;
             kernel->canFail = canFail;
             kernel->buffers = buffers;
             kernel->workItems = workItems;
             kernel->localBytes = localBytes;
             return kernel;
           }),
           py::arg("functions"), py::arg("handle"), py::arg("name"), py::arg("pointers"),
           py::arg("scratch_bytes"), py::arg("can_fail"), py::arg("buffers"), py::arg("work_items"),
           py::arg("local_bytes"));
  py::class_<Queue, std::shared_ptr<Queue>>(module, "Queue", py::module_local())
      .def(py::init([](std::shared_ptr<Functions> functions, uint64_t handle, uint64_t status) {
             auto queue = std::make_shared<Queue>();
             queue->functions = std::move(functions);
             queue->handle = pointer(handle);
             queue->status = pointer(status);
             return queue;
           }),
           py::arg("functions"), py::arg("handle"), py::arg("status"))
      .def("take_failure", &Queue::takeFailure)
      .def("close", &Queue::close, Unlocked());
  py::class_<Device>(module, "Device", py::module_local())
      .def(py::init([](std::shared_ptr<Functions> functions, uint64_t context, const std::string &name,
                       uint64_t units) {
             return std::make_unique<Device>(std::move(functions), pointer(context), name, units);
           }),
           py::arg("functions"), py::arg("context"), py::arg("name"), py::arg("units"))
      .def_property_readonly("context", [](Device &self) { return reinterpret_cast<uint64_t>(&self); })
      .def("set_context", &Device::setContext)
      .def("add_stream", &Device::addStream)
      .def("remove_stream", &Device::removeStream)
      .def("add_function", &Device::addFunction)
      .def("remove_function", &Device::removeFunction)
      .def("add_memory",
           [](Device &self, uint64_t address, uint64_t size, uint64_t start, uint64_t buffer,
              uint64_t whole) { self.memory.add(address, {size, start, pointer(buffer), whole}); })
      .def("remove_memory",
           [](Device &self, uint64_t address) -> py::object {
             Allocation removed;
             if (!self.memory.remove(address, &removed))
               return py::none();
             return plain(removed);
           })
      .def("find_memory",
           [](Device &self, uint64_t address, uint64_t size, const std::string &call) {
             return plain(self.memory.find(address, size, call));
           })
      .def("clear_memory", [](Device &self) { return plain(self.memory.clear()); })
      .def("launch", [](Device &self, uint64_t function, std::array<uint32_t, 3> grid, uint64_t stream,
                        const std::string &args) {
        const uint32_t counts[3] = {grid[0], grid[1], grid[2]};
        py::gil_scoped_release released;
        self.launch(stream, function, counts, args.data(), args.size());
      });
  module.attr("launch_entry") = reinterpret_cast<uint64_t>(&tpk_opencl_launch);
}
