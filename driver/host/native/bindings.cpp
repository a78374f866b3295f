// The Python bindings: convert and check arguments, release the GIL, and raise typed errors.
#include "access.h"
#include "functions.h"
#include "host.h"
#include "interrupts.h"
#include "tpk_hooks.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace py = pybind11;
using tpk::Code;
using tpk::Error;
using tpk::Host;

namespace {

// Raises the error for a bad call.
void fail(const Host &, Code code, const char *hook, const std::string &reason) {
  throw Error(code, tpk::text(hook, ": ", reason));
}

using Binder = tpk::HookBinder<Host, decltype(&fail)>;

// A function removed from a device; `busy` while earlier launches still use its code.
struct RemovedFunction {
  tpk::FunctionPointer function;
  bool busy() const { return function.use_count() > 1; }
};

// Runs Python's handlers of pending signals. Returns whether one has raised an exception, which is then set.
bool askInterpreter() {
  if (syscall(SYS_gettid) != getpid()) // only the interpreter's main thread runs them
    return false;
  PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

void translate(std::exception_ptr pointer) {
  try {
    if (pointer)
      std::rethrow_exception(pointer);
  } catch (const Error &error) {
    tpk::setError(error.code, tpk::text(tpk::DeviceName, ": ", error.what()));
  } catch (const tpk::Interrupted &) { // the exception is set
  }
}

} // namespace

PYBIND11_MODULE(_host, module, py::mod_gil_not_used()) {
  module.doc() = "Native parts of the host CPU device; use triton_porting_kit.driver.host.HostDevice.";
  tpk::installForkHandlers();
  tpk::interruptPoll = askInterpreter;
  py::register_local_exception_translator(translate);

  py::class_<RemovedFunction>(module, "RemovedFunction")
      .def_property_readonly("busy", &RemovedFunction::busy);

  py::class_<Host> type(module, "Host");
  tpk::bindHooks(type, fail);
  type.def(py::init<uint64_t>(), py::arg("memory_limit"))
      .def("memory_usage",
           [](Host &host) {
             auto usage = host.usage();
             return py::make_tuple(usage.inUse, usage.peak, usage.count, usage.limit);
           })
      .def("allocation_of",
           [](Host &host, py::handle target) -> py::object {
             auto address = Binder::number<uint64_t>(fail, host, "allocation_of",
                                                     {"addr", Code::InvalidPointer}, target);
             auto found = host.allocationOf(address);
             return found ? py::object(py::make_tuple(found->begin, found->size)) : py::none();
           })
      .def("add_function",
           [](Host &host, uint64_t entry, uint64_t scratchBytes, uint64_t clearedBytes, bool asserts,
              uint64_t argumentBytes, bool updates, int64_t exclusiveAt, int64_t stripesAt, std::string name,
              uint64_t codeBytes, int64_t programAt, std::vector<int32_t> pointers,
              std::vector<std::string> explanation) {
             return host.addFunction({reinterpret_cast<tpk::KernelEntry>(entry), scratchBytes, clearedBytes,
                                      asserts, argumentBytes, updates, exclusiveAt, stripesAt,
                                      std::move(name), codeBytes, programAt, std::move(pointers),
                                      std::move(explanation)});
           })
      .def("fail_launches", &Host::failLaunches, py::arg("reason"))
      .def("allow_launches", &Host::allowLaunches)
      .def("remove_function",
           [](Host &host, uint64_t function) { return RemovedFunction{host.removeFunction(function)}; });

  module.def("choose_programs", &tpk::choosePrograms, py::arg("begin"), py::arg("end"));
  module.def("pool_width", [] { return tpk::Pool::instance().width(); });
  py::dict services;
  services["tpk_host_access"] = reinterpret_cast<uint64_t>(&tpk_host_access);
  services["tpk_host_reaches"] = reinterpret_cast<uint64_t>(&tpk_host_reaches);
  services["tpk_host_fail"] = reinterpret_cast<uint64_t>(&tpk_host_fail);
  services["tpk_host_nanoseconds"] = reinterpret_cast<uint64_t>(&tpk_host_nanoseconds);
  services["tpk_host_print"] = reinterpret_cast<uint64_t>(&tpk_host_print);
  module.attr("services") = services;
  std::vector<tpk::Routine> routines;
  tpk::addElementaryFunctions(routines);
  tpk::addSpecialFunctions(routines);
  tpk::addDirectedArithmetic(routines);
  py::dict functions, signatures;
  for (const tpk::Routine &routine : routines) {
    functions[py::str(routine.name)] = routine.address;
    signatures[py::str(routine.name)] = routine.signature;
  }
  module.attr("functions") = functions;
  module.attr("signatures") = signatures;
  module.attr("launch_entry") = reinterpret_cast<uint64_t>(&tpk_host_launch);
}
