// Torch asks a device guard in Python for its device type in functions that must not throw, also while it
// unwinds from an exception that Python has raised. A call of a Python object fails then, and torch ends the
// process. `Answer` gives the same object to every call; a pending exception is put aside first.

#include "answer.h"

namespace tpk {
namespace {

struct Answer {
  PyObject_HEAD PyObject *value;
  PyObject *exception; // the last one put aside, or null
};

PyObject *make(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *value;
  if (!PyArg_ParseTuple(args, "O", &value))
    return nullptr;
  PyObject *self = type->tp_alloc(type, 0);
  if (self) {
    Py_INCREF(value);
    reinterpret_cast<Answer *>(self)->value = value;
  }
  return self;
}

void destroy(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<Answer *>(self)->value);
  Py_XDECREF(reinterpret_cast<Answer *>(self)->exception);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject *call(PyObject *self, PyObject *, PyObject *) {
  auto *answer = reinterpret_cast<Answer *>(self);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type) {
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
      PyException_SetTraceback(value, traceback);
    Py_XDECREF(answer->exception);
    answer->exception = value;
    Py_DECREF(type);
    Py_XDECREF(traceback);
  }
  Py_INCREF(answer->value);
  return answer->value;
}

PyObject *take(PyObject *self, PyObject *) {
  auto *answer = reinterpret_cast<Answer *>(self);
  PyObject *exception = answer->exception;
  answer->exception = nullptr;
  if (exception)
    return exception;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"take", take, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void *>(destroy)},
                       {Py_tp_call, reinterpret_cast<void *>(call)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec spec = {"triton_porting_kit.pytorch._storage.Answer", sizeof(Answer), 0, Py_TPFLAGS_DEFAULT,
                    slots};

} // namespace

PyObject *answer_type() { return PyType_FromSpec(&spec); }

} // namespace tpk
