// The launch routine that needs no compiler at run time: it interprets a plan of the signature, which is made
// once when the launcher is constructed, and fills the argument block.

#include "launch_support.h"

#include "guard.h"

#include <structmember.h>

#include <memory>
#include <string>

namespace {

/// How a value is converted and stored; the same numbers as triton_porting_kit.launcher.types.Kind.
enum class Kind : int { Pointer, Bool, I8, I16, I32, I64, U8, U16, U32, U64, FP16, BF16, FP32, FP64 };

/// One parameter's position in the block.
struct Slot {
  Kind kind;
  std::size_t offset;
  std::string name;
  std::string type;
  bool host; // whether a pointer must be one of the host
};

/// One argument of the launch, or one member of a tuple.
struct Node {
  enum class Op { Constexpr, Scalar, Tuple, Descriptor };
  Op op;
  std::string name;
  std::string type;
  std::vector<Slot> slots;   // one for a scalar; for a descriptor, see descriptor_fields
  std::vector<Node> members; // of a tuple
};

struct Plan {
  tpk::Entry entry;
  std::size_t size;
  std::vector<Node> arguments;
  std::vector<Slot> hidden;
  std::vector<const char *> hidden_list;
  std::string argument_names;
  std::string hidden_names;
  tpk::Kernel kernel;
};

// --- packing
// ------------------------------------------------------------------------------------------------

template <class T, class Convert>
bool store(Convert convert, PyObject *value, const Slot &slot, unsigned char *block) {
  T converted;
  if (!convert(value, tpk::Parameter{slot.name.c_str(), slot.type.c_str(), slot.host}, &converted))
    return false;
  std::memcpy(block + slot.offset, &converted, sizeof converted);
  return true;
}

bool pack_scalar(const Slot &slot, PyObject *value, unsigned char *block) {
  switch (slot.kind) {
  case Kind::Pointer:
    return store<std::uint64_t>(tpk::to_pointer, value, slot, block);
  case Kind::Bool:
    return store<std::uint8_t>(tpk::to_bool, value, slot, block);
  case Kind::I8:
    return store<std::int8_t>(tpk::to_integer<std::int8_t>, value, slot, block);
  case Kind::I16:
    return store<std::int16_t>(tpk::to_integer<std::int16_t>, value, slot, block);
  case Kind::I32:
    return store<std::int32_t>(tpk::to_integer<std::int32_t>, value, slot, block);
  case Kind::I64:
    return store<std::int64_t>(tpk::to_integer<std::int64_t>, value, slot, block);
  case Kind::U8:
    return store<std::uint8_t>(tpk::to_integer<std::uint8_t>, value, slot, block);
  case Kind::U16:
    return store<std::uint16_t>(tpk::to_integer<std::uint16_t>, value, slot, block);
  case Kind::U32:
    return store<std::uint32_t>(tpk::to_integer<std::uint32_t>, value, slot, block);
  case Kind::U64:
    return store<std::uint64_t>(tpk::to_integer<std::uint64_t>, value, slot, block);
  case Kind::FP16:
    return store<std::uint16_t>(tpk::to_fp16, value, slot, block);
  case Kind::BF16:
    return store<std::uint16_t>(tpk::to_bf16, value, slot, block);
  case Kind::FP32:
    return store<float>(tpk::to_fp32, value, slot, block);
  case Kind::FP64:
    return store<double>(tpk::to_double, value, slot, block);
  }
  PyErr_Format(PyExc_SystemError, "unknown parameter kind %d", static_cast<int>(slot.kind));
  return false;
}

bool pack_slots(const std::vector<Slot> &slots, PyObject *const *values, unsigned char *block) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!pack_scalar(slots[i], values[i], block))
      return false;
  return true;
}

bool pack_arguments(const std::vector<Node> &nodes, PyObject *const *values, tpk::KeepAlive &keep,
                    unsigned char *block) {
  for (const Node &node : nodes) {
    if (node.op == Node::Op::Constexpr) { // may be missing at the end: not read
      ++values;
      continue;
    }
    PyObject *value = *values++;
    switch (node.op) {
    case Node::Op::Constexpr:
      break;
    case Node::Op::Scalar:
      if (!pack_scalar(node.slots[0], value, block))
        return false;
      break;
    case Node::Op::Tuple: {
      const auto count = static_cast<Py_ssize_t>(node.members.size());
      PyObject *const *members = tpk::tuple_members(value, node.name.c_str(), count, keep);
      if (!members || !pack_arguments(node.members, members, keep, block))
        return false;
      break;
    }
    case Node::Op::Descriptor: {
      const tpk::Parameter parameter{node.name.c_str(), node.type.c_str()};
      const auto count = static_cast<Py_ssize_t>(node.slots.size());
      std::vector<PyObject *> fields(node.slots.size());
      if (!tpk::descriptor_fields(value, parameter, count, keep, fields.data()) ||
          !pack_slots(node.slots, fields.data(), block))
        return false;
      break;
    }
    }
  }
  return true;
}

// --- the callable
// -------------------------------------------------------------------------------------------

constexpr const char *kPlanCapsule = "triton_porting_kit.launcher._packed.Plan";

PyObject *launch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
  const auto *plan = static_cast<const Plan *>(PyCapsule_GetPointer(self, kPlanCapsule));
  if (!plan)
    return nullptr;
  // Few kernels have more than a thousand bytes of arguments; their blocks are on the heap.
  alignas(8) unsigned char small_block[1024];
  std::unique_ptr<std::uint64_t[]> large_block;
  unsigned char *block = small_block;
  if (plan->size > sizeof small_block) {
    large_block.reset(new std::uint64_t[plan->size / 8]);
    block = reinterpret_cast<unsigned char *>(large_block.get());
  }
  std::memset(block, 0, plan->size);
  const auto pack = [&](PyObject *const *values, PyObject *const *hidden, tpk::KeepAlive &keep) {
    return pack_arguments(plan->arguments, values, keep, block) && pack_slots(plan->hidden, hidden, block);
  };
  return tpk::launch(plan->entry, plan->kernel, args, count, keywords, block, plan->size, pack);
}

PyMethodDef launch_method = {
    "launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch)),
    METH_FASTCALL | METH_KEYWORDS,
    "launch(gridX, gridY, gridZ, stream, function, kernel_metadata, launch_metadata, launch_enter_hook,\n"
    "       launch_exit_hook, *args, **hidden)"};

// --- making a plan
// ------------------------------------------------------------------------------------------

bool read_slots(PyObject *list, std::vector<Slot> &slots) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    int kind, host;
    Py_ssize_t offset;
    const char *name, *type;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "inssp", &kind, &offset, &name, &type, &host))
      return false;
    slots.push_back({static_cast<Kind>(kind), static_cast<std::size_t>(offset), name, type, host != 0});
  }
  return true;
}

bool read_nodes(PyObject *list, std::vector<Node> &nodes) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    int op;
    const char *name, *type;
    PyObject *slots, *members;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "issO!O!", &op, &name, &type, &PyList_Type, &slots,
                          &PyList_Type, &members))
      return false;
    Node &node = nodes.emplace_back(Node{static_cast<Node::Op>(op), name, type, {}, {}});
    if (!read_slots(slots, node.slots) || !read_nodes(members, node.members))
      return false;
  }
  return true;
}

PyObject *bind(PyObject *, PyObject *args) {
  PyObject *arguments, *hidden;
  Py_ssize_t size;
  const char *argument_names, *hidden_names;
  unsigned long long function, context;
  if (!PyArg_ParseTuple(args, "O!O!nssKK", &PyList_Type, &arguments, &PyList_Type, &hidden, &size,
                        &argument_names, &hidden_names, &function, &context))
    return nullptr;
  auto plan = std::make_unique<Plan>();
  plan->entry = {reinterpret_cast<tpk::LaunchFunction>(function), reinterpret_cast<void *>(context)};
  plan->size = static_cast<std::size_t>(size);
  plan->argument_names = argument_names;
  plan->hidden_names = hidden_names;
  if (!read_nodes(arguments, plan->arguments) || !read_slots(hidden, plan->hidden))
    return nullptr;
  for (const Slot &slot : plan->hidden)
    plan->hidden_list.push_back(slot.name.c_str());
  std::size_t required = plan->arguments.size();
  while (required && plan->arguments[required - 1].op == Node::Op::Constexpr)
    --required;
  plan->kernel = {static_cast<Py_ssize_t>(plan->arguments.size()),
                  static_cast<Py_ssize_t>(required),
                  plan->argument_names.c_str(),
                  static_cast<Py_ssize_t>(plan->hidden.size()),
                  plan->hidden_list.data(),
                  plan->hidden_names.c_str()};
  tpk::Ref capsule(PyCapsule_New(plan.get(), kPlanCapsule, [](PyObject *self) {
    delete static_cast<Plan *>(PyCapsule_GetPointer(self, kPlanCapsule));
  }));
  if (!capsule)
    return nullptr;
  plan.release();
  return PyCFunction_NewEx(&launch_method, capsule.get(), nullptr);
}

// --- a guard before a launch routine
// --------------------------------------------------------------------------------

constexpr const char *kGuardCapsule = "triton_porting_kit.launcher._packed.Guard";

PyObject *guard(PyObject *, PyObject *args) {
  PyObject *list, *other;
  unsigned long long function, context;
  if (!PyArg_ParseTuple(args, "O!OKK", &PyList_Type, &list, &other, &function, &context))
    return nullptr;
  auto made = std::make_unique<tpk::Guard>();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    long long op, a, b;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "LLL", &op, &a, &b))
      return nullptr;
    made->steps.steps.push_back({static_cast<tpk::Op>(op), a, b});
  }
  made->entry = {reinterpret_cast<tpk::LaunchFunction>(function), reinterpret_cast<void *>(context)};
  made->other = Py_NewRef(other);
  tpk::Guard *kept = made.release();
  tpk::Ref capsule(PyCapsule_New(kept, kGuardCapsule, [](PyObject *self) {
    auto *guard = static_cast<tpk::Guard *>(PyCapsule_GetPointer(self, kGuardCapsule));
    Py_DECREF(guard->other);
    delete guard;
  }));
  return Py_BuildValue("(ONN)", capsule.get(),
                       PyLong_FromVoidPtr(reinterpret_cast<void *>(tpk::Guard::launch)),
                       PyLong_FromVoidPtr(kept));
}

// --- Launcher: a class that is called as fast as the function it holds
// --------------------------------------

struct Launcher {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject *launch;
};

PyObject *launcher_call(PyObject *self, PyObject *const *args, std::size_t flags, PyObject *keywords) {
  PyObject *launch = reinterpret_cast<Launcher *>(self)->launch;
  if (!launch) {
    PyErr_SetString(PyExc_RuntimeError, "Launcher.__init__ was not called");
    return nullptr;
  }
  return PyObject_Vectorcall(launch, args, flags, keywords);
}

PyObject *launcher_new(PyTypeObject *type, PyObject *, PyObject *) {
  PyObject *self = type->tp_alloc(type, 0);
  if (self)
    reinterpret_cast<Launcher *>(self)->call = launcher_call;
  return self;
}

int launcher_init(PyObject *self, PyObject *args, PyObject *keywords) {
  PyObject *launch;
  if (keywords && PyDict_GET_SIZE(keywords)) {
    PyErr_SetString(PyExc_TypeError, "Launcher takes no keyword arguments");
    return -1;
  }
  if (!PyArg_ParseTuple(args, "O:Launcher", &launch))
    return -1;
  Py_XSETREF(reinterpret_cast<Launcher *>(self)->launch, Py_NewRef(launch));
  return 0;
}

void launcher_dealloc(PyObject *self) {
  Py_XDECREF(reinterpret_cast<Launcher *>(self)->launch);
  Py_TYPE(self)->tp_free(self);
}

PyMemberDef launcher_members[] = {
    {"launch", T_OBJECT_EX, offsetof(Launcher, launch), READONLY, "The native function that a call goes to."},
    {}};

PyTypeObject launcher_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

bool ready_launcher_type() {
  launcher_type.tp_name = "triton_porting_kit.launcher._packed.Launcher";
  launcher_type.tp_doc = "Launcher(launch): calls `launch` with the arguments that it is called with.";
  launcher_type.tp_basicsize = sizeof(Launcher);
  launcher_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL;
  launcher_type.tp_vectorcall_offset = offsetof(Launcher, call);
  launcher_type.tp_call = PyVectorcall_Call;
  launcher_type.tp_new = launcher_new;
  launcher_type.tp_init = launcher_init;
  launcher_type.tp_dealloc = launcher_dealloc;
  launcher_type.tp_members = launcher_members;
  return PyType_Ready(&launcher_type) == 0;
}

PyMethodDef module_methods[] = {
    {"bind", bind, METH_VARARGS,
     "bind(arguments, hidden, size, argument_names, hidden_names, function, context) -> launch"},
    {"guard", guard, METH_VARARGS,
     "guard(steps, other_version, function, context) -> (owner, function, context)"},
    {}};

PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                 "_packed",
                                 "The native packed launch routine.",
                                 -1,
                                 module_methods,
                                 {},
                                 {},
                                 {},
                                 {}};

} // namespace

PyMODINIT_FUNC PyInit__packed() {
  if (!tpk::names.intern() || !ready_launcher_type())
    return nullptr;
  PyObject *module = PyModule_Create(&module_definition);
  if (module && PyModule_AddObjectRef(module, "Launcher", reinterpret_cast<PyObject *>(&launcher_type)) < 0)
    Py_CLEAR(module);
  return module;
}
