"""What numpy and DLPack need to see the memory of an array in place."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np


class HostView:
    """Memory that numpy accesses in place, through ``__array_interface__``. Keeps `owner` alive.

    `strides` are in bytes.
    """

    def __init__(
        self,
        owner: object,
        address: int,
        element: np.dtype[Any],
        shape: Sequence[int],
        strides: Sequence[int],
    ) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(shape),
            "typestr": element.str,
            "strides": tuple(strides),
            "data": (address, False),
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
