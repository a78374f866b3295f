// The Python type `Pool`: makes DLPack capsules of device memory, and takes the memory back when tensors are
// freed.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "answer.h"
#include "dlpack.h"
#include "pool.h"

#include <cstdlib>
#include <memory>
#include <new>

namespace {

using namespace tpk;

/// What a tensor's storage owns. The shape and the strides follow it in memory.
struct Holder {
  dlpack::ManagedTensor managed;
  storage::Pool *pool;
  storage::Block block;
  std::uint64_t generation;
};

/// Called when the storage is freed: from any thread, without the GIL, also while Python ends.
void drop(dlpack::ManagedTensor *managed) {
  auto *holder = static_cast<Holder *>(managed->context);
  if (holder->block.address)
    holder->pool->give(holder->block, holder->generation);
  std::free(holder);
}

void drop_capsule(PyObject *capsule) {
  // A capsule that a tensor was made of has another name.
  if (auto *managed = static_cast<dlpack::ManagedTensor *>(
          PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : nullptr))
    managed->deleter(managed);
}

struct PoolObject {
  PyObject_HEAD storage::Pool *pool; // never destroyed: storages may outlive everything of Python's
};

/// The shape and the strides of a tensor, and the bytes of its storage.
struct Layout {
  Py_ssize_t rank;
  std::int64_t *shape;
  std::int64_t *strides;
  std::uint64_t bytes;
};

bool read_integers(PyObject *sequence, std::int64_t *values) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence); ++i) {
    values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(sequence, i));
    if (values[i] == -1 && PyErr_Occurred())
      return false;
    if (values[i] < 0) {
      PyErr_Format(PyExc_RuntimeError, "sizes and strides of a tensor must not be negative; got %lld",
                   static_cast<long long>(values[i]));
      return false;
    }
  }
  return true;
}

/// Fills in contiguous strides if the tensor has none of its own, and the bytes that its elements span.
bool complete(Layout &layout, bool contiguous, std::uint64_t item_bytes) {
  std::uint64_t span = 1;
  std::uint64_t step = 1;
  bool empty = false;
  bool overflow = false;
  for (Py_ssize_t i = layout.rank - 1; i >= 0; --i) {
    const auto size = static_cast<std::uint64_t>(layout.shape[i]);
    if (contiguous) {
      layout.strides[i] = static_cast<std::int64_t>(step);
      overflow |= __builtin_mul_overflow(step, size ? size : 1, &step);
    }
    if (!size) {
      empty = true;
      continue;
    }
    std::uint64_t reach;
    overflow |= __builtin_mul_overflow(size - 1, static_cast<std::uint64_t>(layout.strides[i]), &reach);
    overflow |= __builtin_add_overflow(span, reach, &span);
  }
  overflow |= __builtin_mul_overflow(span, item_bytes, &layout.bytes) || layout.bytes >> 62;
  if (empty)
    layout.bytes = 0;
  else if (overflow) {
    PyErr_SetString(PyExc_RuntimeError, "the tensor's storage would have more than 2**62 bytes");
    return false;
  }
  return true;
}

/// allocate(sizes, strides or None, code, bits, stream, address) -> capsule or None
///
/// With address 0, takes a cached block, and returns the number of bytes to allocate if there is none.
/// Otherwise adopts the block at this address.
PyObject *allocate(PyObject *self, PyObject *const *args, Py_ssize_t count) {
  if (count != 6 || !PyTuple_Check(args[0]) || !(args[1] == Py_None || PyTuple_Check(args[1]))) {
    PyErr_SetString(PyExc_TypeError,
                    "allocate(sizes: tuple, strides: tuple | None, code, bits, stream, address)");
    return nullptr;
  }
  const Py_ssize_t rank = PyTuple_GET_SIZE(args[0]);
  const bool contiguous = args[1] == Py_None;
  if (!contiguous && PyTuple_GET_SIZE(args[1]) != rank) {
    PyErr_Format(PyExc_RuntimeError, "a tensor of %zd sizes has as many strides, not %zd", rank,
                 PyTuple_GET_SIZE(args[1]));
    return nullptr;
  }
  const long code = PyLong_AsLong(args[2]);
  const long bits = PyLong_AsLong(args[3]);
  const long long stream = PyLong_AsLongLong(args[4]);
  const unsigned long long address = PyLong_AsUnsignedLongLong(args[5]);
  if (PyErr_Occurred())
    return nullptr;

  const std::size_t lengths = 2 * static_cast<std::size_t>(rank) * sizeof(std::int64_t);
  std::unique_ptr<void, decltype(&std::free)> memory(std::malloc(sizeof(Holder) + lengths), &std::free);
  if (!memory)
    return PyErr_NoMemory();
  auto *holder = new (memory.get()) Holder{};
  auto *numbers = reinterpret_cast<std::int64_t *>(holder + 1);
  Layout layout{rank, numbers, numbers + rank, 0};
  if (!read_integers(args[0], layout.shape) || (!contiguous && !read_integers(args[1], layout.strides)) ||
      !complete(layout, contiguous, static_cast<std::uint64_t>(bits) / 8))
    return nullptr;

  holder->pool = reinterpret_cast<PoolObject *>(self)->pool;
  if (layout.bytes) {
    try {
      holder->block = address ? holder->pool->adopt(address, layout.bytes, stream)
                              : holder->pool->take(layout.bytes, stream);
    } catch (const std::bad_alloc &) {
      return PyErr_NoMemory();
    }
    if (!holder->block.address)
      return PyLong_FromUnsignedLongLong(storage::size_class(layout.bytes));
    holder->generation = holder->pool->generation();
  }
  holder->managed.tensor = {reinterpret_cast<void *>(holder->block.address),
                            {dlpack::kExtensionDevice, 0},
                            static_cast<std::int32_t>(rank),
                            {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1},
                            layout.shape,
                            layout.strides,
                            0};
  holder->managed.context = holder;
  holder->managed.deleter = drop;
  PyObject *capsule = PyCapsule_New(&holder->managed, "dltensor", drop_capsule);
  if (!capsule) {
    drop(&holder->managed);
    memory.release();
    return nullptr;
  }
  memory.release();
  return capsule;
}

storage::Pool &pool_of(PyObject *self) { return *reinterpret_cast<PoolObject *>(self)->pool; }

PyObject *use(PyObject *self, PyObject *args) {
  unsigned long long address;
  long long stream;
  if (!PyArg_ParseTuple(args, "KL", &address, &stream))
    return nullptr;
  return PyBool_FromLong(pool_of(self).use(address, stream));
}

PyObject *take_pending(PyObject *self, PyObject *) {
  PyObject *list = PyList_New(0);
  if (!list || !pool_of(self).has_pending())
    return list;
  for (const auto &[block, streams] : pool_of(self).take_pending()) {
    PyObject *others = PyList_New(0);
    for (const std::int64_t stream : streams) {
      PyObject *number = PyLong_FromLongLong(stream);
      if (number)
        PyList_Append(others, number);
      Py_XDECREF(number);
    }
    PyObject *entry = Py_BuildValue("((KKKL)N)", static_cast<unsigned long long>(block.address),
                                    static_cast<unsigned long long>(block.bytes),
                                    static_cast<unsigned long long>(block.requested),
                                    static_cast<long long>(block.stream), others);
    if (!entry || PyList_Append(list, entry)) {
      Py_XDECREF(entry);
      Py_DECREF(list);
      return nullptr;
    }
    Py_DECREF(entry);
  }
  return list;
}

PyObject *settle(PyObject *self, PyObject *args) {
  unsigned long long address, bytes, requested;
  long long stream;
  if (!PyArg_ParseTuple(args, "(KKKL)", &address, &bytes, &requested, &stream))
    return nullptr;
  pool_of(self).settle({address, bytes, requested, stream});
  Py_RETURN_NONE;
}

PyObject *release(PyObject *self, PyObject *) {
  const auto addresses = pool_of(self).release();
  PyObject *list = PyList_New(static_cast<Py_ssize_t>(addresses.size()));
  for (std::size_t i = 0; list && i < addresses.size(); ++i)
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), PyLong_FromUnsignedLongLong(addresses[i]));
  return list;
}

PyObject *forget(PyObject *self, PyObject *) {
  pool_of(self).forget();
  Py_RETURN_NONE;
}

PyObject *reset_peaks(PyObject *self, PyObject *) {
  pool_of(self).reset_peaks();
  Py_RETURN_NONE;
}

PyObject *count(const storage::Count &count) {
  return Py_BuildValue(
      "(KKKK)", static_cast<unsigned long long>(count.current), static_cast<unsigned long long>(count.peak),
      static_cast<unsigned long long>(count.allocated), static_cast<unsigned long long>(count.freed));
}

PyObject *statistics(PyObject *self, PyObject *) {
  const storage::Statistics found = pool_of(self).statistics();
  return Py_BuildValue("{s:N,s:N,s:N,s:N}", "allocation", count(found.allocations), "requested_bytes",
                       count(found.requested), "allocated_bytes", count(found.active), "reserved_bytes",
                       count(found.reserved));
}

PyObject *snapshot(PyObject *self, PyObject *) {
  const auto segments = pool_of(self).snapshot();
  PyObject *list = PyList_New(static_cast<Py_ssize_t>(segments.size()));
  for (std::size_t i = 0; list && i < segments.size(); ++i) {
    const auto &[block, live] = segments[i];
    PyObject *entry = Py_BuildValue("(KKKLO)", static_cast<unsigned long long>(block.address),
                                    static_cast<unsigned long long>(block.bytes),
                                    static_cast<unsigned long long>(block.requested),
                                    static_cast<long long>(block.stream), live ? Py_True : Py_False);
    if (!entry) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), entry);
  }
  return list;
}

PyMethodDef methods[] = {{"allocate", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(allocate)),
                          METH_FASTCALL, nullptr},
                         {"use", use, METH_VARARGS, nullptr},
                         {"take_pending", take_pending, METH_NOARGS, nullptr},
                         {"settle", settle, METH_VARARGS, nullptr},
                         {"release", release, METH_NOARGS, nullptr},
                         {"forget", forget, METH_NOARGS, nullptr},
                         {"reset_peaks", reset_peaks, METH_NOARGS, nullptr},
                         {"statistics", statistics, METH_NOARGS, nullptr},
                         {"snapshot", snapshot, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyObject *make(PyTypeObject *type, PyObject *, PyObject *) {
  PyObject *self = type->tp_alloc(type, 0);
  if (self)
    reinterpret_cast<PoolObject *>(self)->pool = new storage::Pool;
  return self;
}

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(make)},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char *>("A caching allocator; see `pytorch.memory`.")},
                       {0, nullptr}};

PyType_Spec spec = {"triton_porting_kit.pytorch._storage.Pool", sizeof(PoolObject), 0, Py_TPFLAGS_DEFAULT,
                    slots};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_storage", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

/// Add a new reference to a type, or null, to a module.
bool add(PyObject *module, const char *name, PyObject *type) {
  if (type && PyModule_AddObject(module, name, type) == 0)
    return true;
  Py_XDECREF(type);
  return false;
}

} // namespace

PyMODINIT_FUNC PyInit__storage() {
  PyObject *module = PyModule_Create(&definition);
  if (module && add(module, "Pool", PyType_FromSpec(&spec)) && add(module, "Answer", answer_type()))
    return module;
  Py_XDECREF(module);
  return nullptr;
}
