"""What numpy and DLPack need to see the memory of an array in place."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triton_porting_kit.driver.array import DeviceArray


class HostView:
    """What numpy needs to see an array's memory in place; keeps the array alive."""

    def __init__(self, array: DeviceArray) -> None:
        self._array = array
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.numpy.str,
            "strides": tuple(stride * array.itemsize for stride in array.strides),
            "data": (array.data_ptr(), False),
        }


def set_dlpack_code(capsule: Any, code: int) -> None:
    """Name the type that numpy lacks in a capsule that numpy made for the same bits."""
    api = ctypes.pythonapi
    api.PyCapsule_IsValid.argtypes = api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    versioned = api.PyCapsule_IsValid(capsule, b"dltensor_versioned")
    name = b"dltensor_versioned" if versioned else b"dltensor"
    # DLTensor.dtype.code lies behind data, device and ndim; a versioned tensor has 32 bytes in front of it.
    offset = 20 + (32 if versioned else 0)
    ctypes.c_uint8.from_address(api.PyCapsule_GetPointer(capsule, name) + offset).value = code
