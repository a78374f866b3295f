"""`interpret` runs a kernel on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np

from triton_porting_kit.compiler import artefacts
from triton_porting_kit.errors import SignatureError

from .formats import bits_of, dtype_of, is_float
from .machine import Launch
from .memory import Memory
from .program import Kernel, Parameter, read_kernel
from .tiles import number


def interpret(
    kernel: Kernel | str, grid: Sequence[int], arguments: Sequence[Any], *, output: TextIO | None = None
) -> None:
    """Run a kernel of the structured form, or its text, on arguments in the order of its parameters.

    `grid` has one to three counts. A pointer is a contiguous NumPy array, which is accessed in place; bf16 and 8-bit
    floats are integers of their bit patterns. Several arguments may be the same array. Other parameters are numbers.
    The output of the kernel's prints goes to `output`, standard output by default.

    Raises `SignatureError` for arguments that do not fit, `OutOfBounds` for an access outside of the arrays,
    `KernelAssertion`, `WaitsForOthers`, and `NotInterpreted` for what the interpreter does not support.
    """
    if isinstance(kernel, str):
        kernel = read_kernel(artefacts.parse_structured(kernel))
    if len(arguments) != len(kernel.parameters):
        raise SignatureError(
            f"{kernel.name} has {len(kernel.parameters)} parameters, and {len(arguments)} arguments were given"
        )
    memory = Memory()
    known: dict[tuple[int, int], int] = {}
    values = [
        _pointer(memory, known, parameter, given) if parameter.is_pointer else as_number(parameter, given)
        for parameter, given in zip(kernel.parameters, arguments, strict=True)
    ]
    x, y, z = (*map(int, grid), 1, 1, 1)[:3]
    Launch(kernel, (x, y, z), memory, output).run(values)


def _pointer(memory: Memory, known: dict[tuple[int, int], int], parameter: Parameter, given: Any) -> Any:
    if given is None:
        return np.int64(0)
    if not isinstance(given, np.ndarray):
        raise SignatureError(
            f"{parameter.name} points to {parameter.pointee}: give a NumPy array, and not {given!r}"
        )
    if not given.flags.c_contiguous:
        raise SignatureError(f"{parameter.name} is not contiguous: give np.ascontiguousarray of it")
    if parameter.pointee and not _holds(given.dtype, parameter.pointee):
        wanted = dtype_of(parameter.pointee)
        raise SignatureError(
            f"{parameter.name} points to {parameter.pointee}, whose elements are {wanted}, and not {given.dtype}"
        )
    key = (given.ctypes.data, given.nbytes)
    if key not in known:
        known[key] = memory.add(given, parameter.name)
    return np.int64(known[key])


def _holds(dtype: np.dtype[Any], element: str) -> bool:
    """Whether an array can hold elements of a type. For integers and bit patterns, the sign does not matter."""
    wanted = dtype_of(element)
    return dtype == wanted or (
        wanted.kind != "f" and dtype.kind in "biu" and dtype.itemsize == wanted.itemsize
    )


def as_number(parameter: Parameter, given: Any) -> Any:
    """The value of a parameter that is no pointer. Raises `SignatureError`."""
    if isinstance(given, np.ndarray) and given.ndim:
        raise SignatureError(f"{parameter.name} is of type {parameter.type}: give a number, and not an array")
    if not is_float(parameter.type):
        bits = bits_of(parameter.type)
        if not -(1 << (bits - 1)) <= int(given) < 1 << bits:
            raise SignatureError(f"{parameter.name}: {given} does not fit {parameter.type}")
        if bits > 1:
            given = (int(given) + (1 << (bits - 1)) & ((1 << bits) - 1)) - (1 << (bits - 1))
    return number(given, parameter.type)
