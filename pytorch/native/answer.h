// The Python type `Answer`.

#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace tpk {

/// The type, a new reference; null with an exception.
PyObject *answer_type();

} // namespace tpk
