// The extension module of one signature: bind(function, context), the callable that it returns, and
// `routine`.
#include "launch_support.h"

namespace tpk {

// The code of a signature is compiled without these definitions.
template bool to_integer(PyObject *, const Parameter &, std::int8_t *);
template bool to_integer(PyObject *, const Parameter &, std::int16_t *);
template bool to_integer(PyObject *, const Parameter &, std::int32_t *);
template bool to_integer(PyObject *, const Parameter &, std::int64_t *);
template bool to_integer(PyObject *, const Parameter &, std::uint8_t *);
template bool to_integer(PyObject *, const Parameter &, std::uint16_t *);
template bool to_integer(PyObject *, const Parameter &, std::uint32_t *);
template bool to_integer(PyObject *, const Parameter &, std::uint64_t *);

} // namespace tpk

namespace {

constexpr const char *kEntryCapsule = "tpk.Entry";

PyObject *launch(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
  const auto *entry = static_cast<const tpk::Entry *>(PyCapsule_GetPointer(self, kEntryCapsule));
  if (!entry)
    return nullptr;
  const tpk::Signature &signature = tpk::signature;
  // Few kernels have more than a thousand bytes of arguments; their blocks are on the heap.
  alignas(8) unsigned char small_block[1024];
  std::vector<std::uint64_t> large_block;
  void *block = small_block;
  if (signature.block_size > sizeof small_block) {
    large_block.resize((signature.block_size + 7) / 8);
    block = large_block.data();
  }
  std::memset(block, 0, signature.block_size);
  const auto pack = [&](PyObject *const *values, PyObject *const *hidden, tpk::KeepAlive &keep) {
    return signature.pack(values, hidden, keep, block);
  };
  return tpk::launch(*entry, signature.kernel, args, count, keywords, block, signature.block_size, pack);
}

PyMethodDef launch_method = {
    "launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch)),
    METH_FASTCALL | METH_KEYWORDS,
    "launch(gridX, gridY, gridZ, stream, function, kernel_metadata, launch_metadata, launch_enter_hook,\n"
    "       launch_exit_hook, *args, **hidden)"};

/// bind(function, context) -> launch: creates the callable for one device.
PyObject *bind(PyObject *, PyObject *args) {
  unsigned long long function, context;
  if (!PyArg_ParseTuple(args, "KK", &function, &context))
    return nullptr;
  auto *entry =
      new tpk::Entry{reinterpret_cast<tpk::LaunchFunction>(function), reinterpret_cast<void *>(context)};
  tpk::Ref capsule(PyCapsule_New(entry, kEntryCapsule, [](PyObject *self) {
    delete static_cast<tpk::Entry *>(PyCapsule_GetPointer(self, kEntryCapsule));
  }));
  if (!capsule) {
    delete entry;
    return nullptr;
  }
  return PyCFunction_NewEx(&launch_method, capsule.get(), nullptr);
}

PyMethodDef module_methods[] = {{"bind", bind, METH_VARARGS, "bind(function, context) -> launch"}, {}};

/// The attribute `routine` is the address of the launch routine that was linked, or 0.
int start(PyObject *module) {
  if (!tpk::names.intern())
    return -1;
  tpk::Ref routine(PyLong_FromVoidPtr(reinterpret_cast<void *>(tpk::signature.routine)));
  return routine ? PyModule_AddObjectRef(module, "routine", routine.get()) : -1;
}

PyModuleDef_Slot module_slots[] = {{Py_mod_exec, reinterpret_cast<void *>(start)}, {}};

PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "tpk_generated_launcher", "Launches kernels of one signature.", 0, module_methods,
    module_slots};

} // namespace

PyMODINIT_FUNC PyInit_tpk_generated_launcher() { return PyModuleDef_Init(&module_definition); }
