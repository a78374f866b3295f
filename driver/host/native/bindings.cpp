// The Python face: converts and checks arguments, lets go of the interpreter's lock, and raises typed errors.
#include "access.h"
#include "buffers.h"
#include "functions.h"
#include "host.h"
#include "interrupts.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace py = pybind11;
using tpk::Code;
using tpk::Error;
using tpk::Host;

namespace {

uint64_t unsignedValue(const char *call, const char *argument, py::handle value, Code code) {
  auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!number)
    throw py::error_already_set(); // not an integer: TypeError
  unsigned long long converted = PyLong_AsUnsignedLongLong(number.ptr());
  if (converted == ~0ull && PyErr_Occurred()) {
    PyErr_Clear();
    throw Error(code, tpk::text(call, ": ", argument, " ", py::str(number).cast<std::string>(),
                                " is not between 0 and 2**64 - 1"));
  }
  return converted;
}

uint64_t address(const char *call, const char *argument, py::handle value) {
  return unsignedValue(call, argument, value, Code::InvalidPointer);
}

uint64_t count(const char *call, const char *argument, py::handle value) {
  return unsignedValue(call, argument, value, Code::InvalidArgument);
}

tpk::HeldBuffer hold(const char *call, const char *argument, py::handle object, bool writable) {
  try {
    return tpk::hold(object, writable);
  } catch (const tpk::NoBuffer &mistake) {
    throw Error(Code::InvalidArgument, tpk::text(call, ": ", argument, " of ", mistake.what()));
  }
}

template <typename Type, typename> using Same = Type;

// Gives back, at the end of a call, the buffers of work that has ended.
struct Tidy {
  ~Tidy() { tpk::releaseFinished(); }
};

uint64_t allocate(Host &host, py::handle sizeObject, py::handle alignment) {
  py::int_ zero(0);
  int negative = PyObject_RichCompareBool(sizeObject.ptr(), zero.ptr(), Py_LT);
  if (negative < 0)
    throw py::error_already_set();
  // Too large for 64 bits is too large for the memory; below zero is a mistake of another kind.
  Code code = negative ? Code::InvalidArgument : Code::OutOfMemory;
  uint64_t size = unsignedValue("memalloc", "size", sizeObject, code);
  return host.allocate(size, count("memalloc", "alignment", alignment));
}

void copyIn(Host &host, py::handle target, py::handle source, py::handle stream) {
  uint64_t dst = address("memcpy_htod", "dst", target);
  uint64_t queue = count("memcpy_htod", "stream", stream);
  Tidy tidy;
  auto held = hold("memcpy_htod", "src", source, false);
  py::gil_scoped_release released;
  host.copyIn(dst, held.data, held.size, queue, std::move(held.keep));
}

void copyOut(Host &host, py::handle target, py::handle source, py::handle stream) {
  uint64_t src = address("memcpy_dtoh", "src", source);
  uint64_t queue = count("memcpy_dtoh", "stream", stream);
  Tidy tidy;
  auto held = hold("memcpy_dtoh", "dst", target, true);
  py::gil_scoped_release released;
  host.copyOut(held.data, src, held.size, queue, std::move(held.keep));
}

void copy(Host &host, py::handle target, py::handle source, py::handle size, py::handle stream) {
  uint64_t dst = address("memcpy_dtod", "dst", target);
  uint64_t src = address("memcpy_dtod", "src", source);
  uint64_t bytes = unsignedValue("memcpy_dtod", "size", size, Code::InvalidArgument);
  uint64_t queue = count("memcpy_dtod", "stream", stream);
  py::gil_scoped_release released;
  host.copy(dst, src, bytes, queue);
}

void fill(Host &host, py::handle target, py::handle value, py::handle size, py::handle stream) {
  uint64_t dst = address("memset", "dst", target);
  uint64_t byte = count("memset", "value", value);
  if (byte > 255)
    throw Error(Code::InvalidArgument, tpk::text("memset: value ", byte, " is not a byte (0 to 255)"));
  uint64_t bytes = count("memset", "size", size);
  uint64_t queue = count("memset", "stream", stream);
  py::gil_scoped_release released;
  host.fill(dst, uint8_t(byte), bytes, queue);
}

void launch(Host &host, py::handle function, const std::array<py::object, 3> &grid, py::handle stream,
            const py::bytes &args) {
  uint32_t counts[3];
  for (int axis = 0; axis < 3; ++axis) {
    uint64_t value = unsignedValue("launch", "grid count", grid[axis], Code::LaunchError);
    if (value > INT32_MAX)
      throw Error(Code::LaunchError,
                  tpk::text("launch: grid count ", value, " of axis ", axis, " is above 2**31 - 1"));
    counts[axis] = uint32_t(value);
  }
  uint64_t handle = unsignedValue("launch", "function", function, Code::LaunchError);
  uint64_t queue = unsignedValue("launch", "stream", stream, Code::LaunchError);
  std::string_view block = args;
  py::gil_scoped_release released;
  host.launch(queue, handle, counts, block.data(), block.size());
}

// A function taken out of a device; `busy` while work that was launched before still uses its code.
struct RemovedFunction {
  tpk::FunctionPointer function;
  bool busy() const { return function.use_count() > 1; }
};

// Runs Python's handlers of the signals that have arrived. Whether one has raised an exception, which then is
// set.
bool askInterpreter() {
  if (syscall(SYS_gettid) != getpid()) // the interpreter's main thread runs them, and no other
    return false;
  PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

py::object raisedType(const char *name) {
  return py::module_::import("triton_porting_kit.errors").attr(name);
}

py::object errorType(Code code) {
  // Indexed by code; leaked on purpose, the interpreter may be gone when statics are destroyed.
  static auto *types = new std::vector<py::object>;
  if (types->empty())
    for (const char *name : tpk::ErrorNames)
      types->push_back(raisedType(name));
  return (*types)[size_t(code)];
}

void translate(std::exception_ptr pointer) {
  try {
    if (pointer)
      std::rethrow_exception(pointer);
  } catch (const Error &error) {
    PyErr_SetString(errorType(error.code).ptr(), tpk::text(tpk::DeviceName, ": ", error.what()).c_str());
  } catch (const tpk::Interrupted &) { // the exception is set
  }
}

// Wraps a member that takes handles and may wait, so that it does so without the interpreter's lock.
template <typename Result, typename... Handles>
auto waiting(const char *call, Result (Host::*member)(Handles...)) {
  return [call, member](Host &host, Same<py::object, Handles>... handles) -> Result {
    std::array<uint64_t, sizeof...(Handles)> values{count(call, "handle", handles)...};
    Tidy tidy;
    py::gil_scoped_release released;
    return std::apply([&](auto... value) { return (host.*member)(value...); }, values);
  };
}

} // namespace

PYBIND11_MODULE(_host, module, py::mod_gil_not_used()) {
  module.doc() = "Native parts of the host CPU device; use triton_porting_kit.driver.host.HostDevice.";
  tpk::installForkHandlers();
  tpk::interruptPoll = askInterpreter;
  py::register_local_exception_translator(translate);

  py::class_<RemovedFunction>(module, "RemovedFunction")
      .def_property_readonly("busy", &RemovedFunction::busy);

  py::class_<Host>(module, "Host")
      .def(py::init<uint64_t>(), py::arg("memory_limit"))
      .def("memalloc", &allocate)
      .def("memfree",
           [](Host &host, py::handle target) {
             uint64_t block = address("memfree", "addr", target);
             Tidy tidy;
             py::gil_scoped_release released;
             host.release(block);
           })
      .def("memory_usage",
           [](Host &host) {
             auto usage = host.usage();
             return py::make_tuple(usage.inUse, usage.peak, usage.count, usage.limit);
           })
      .def("memcpy_htod", &copyIn)
      .def("memcpy_dtoh", &copyOut)
      .def("memcpy_dtod", &copy)
      .def("memset", &fill)
      .def("create_stream", &Host::createStream)
      .def("destroy_stream", waiting("destroy_stream", &Host::destroyStream))
      .def("synchronize", waiting("synchronize", &Host::synchronize))
      .def("synchronize_all", waiting("synchronize_all", &Host::synchronizeAll))
      .def("create_event", &Host::createEvent)
      .def("destroy_event", waiting("destroy_event", &Host::destroyEvent))
      .def("record_event", waiting("record_event", &Host::recordEvent))
      .def("wait_event", waiting("wait_event", &Host::waitEvent))
      .def("synchronize_event", waiting("synchronize_event", &Host::synchronizeEvent))
      .def("elapsed_time", waiting("elapsed_time", &Host::elapsedMilliseconds))
      .def("allocation_of",
           [](Host &host, py::handle target) -> py::object {
             auto found = host.allocationOf(address("allocation_of", "addr", target));
             return found ? py::object(py::make_tuple(found->begin, found->size)) : py::none();
           })
      .def("add_function",
           [](Host &host, uint64_t entry, uint64_t scratchBytes, uint64_t clearedBytes, bool asserts,
              uint64_t argumentBytes, std::string name, uint64_t codeBytes, int64_t programAt,
              std::vector<int32_t> pointers, std::vector<std::string> explanation) {
             return host.addFunction({reinterpret_cast<tpk::KernelEntry>(entry), scratchBytes, clearedBytes,
                                      asserts, argumentBytes, std::move(name), codeBytes, programAt,
                                      std::move(pointers), std::move(explanation)});
           })
      .def("remove_function",
           [](Host &host, uint64_t function) { return RemovedFunction{host.removeFunction(function)}; })
      .def("launch", &launch)
      .def("close", waiting("close", &Host::close))
      .def("reset", waiting("reset", &Host::reset))
      .def_property_readonly("context", [](Host &host) { return reinterpret_cast<uint64_t>(&host); });

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
