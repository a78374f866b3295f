"""Kernels that crash, each in one line, which ends in a comment ``# line NAME``, and what they are launched on."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import traceback

import numpy as np
import triton
import triton.language as tl
from triton.runtime import driver

from triton_porting_kit.driver import DeviceArray


def line(name: str) -> int:
    """The number of the line marked with a name."""
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, text in enumerate(file, 1) if text.endswith(f"  # line {name}\n"))


class Address:
    """An address, and nothing that is known of it."""

    dtype = "float32"

    def __init__(self, address: int) -> None:
        self._address = address

    def data_ptr(self) -> int:
        return self._address


libc = ctypes.CDLL(None)


class Stack(ctypes.Structure):
    """C's ``stack_t``."""

    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))

    @classmethod
    def current(cls) -> Stack:
        """The calling thread's stack for signals."""
        stack = cls()
        assert libc.sigaltstack(None, ctypes.byref(stack)) == 0
        return stack

    def use(self) -> None:
        assert libc.sigaltstack(ctypes.byref(self), None) == 0


DISABLED = 2
"""The flag of a stack that there is not."""


def array(count: int) -> DeviceArray:
    return DeviceArray.from_numpy(np.arange(count, dtype=np.float32), driver.active.device)


@triton.jit
def copied(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + at, mask=at < n)  # line load
    tl.store(out_ptr + at, value * 2, mask=at < n)  # line store


@triton.jit
def copied_in_one_program(x_ptr, out_ptr, bad, BLOCK: tl.constexpr):
    """Which is (3, 1, 2) of a grid (4, 3, 4)."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if (x == 3) & (y == 1) & (z == 2):
        tl.store(bad, tl.load(x_ptr))  # line one
    tl.store(out_ptr + x + 4 * (y + 3 * z), 1.0)


@triton.jit
def multiplied(a_ptr, out_ptr, k, SIZE: tl.constexpr):
    row, column, step = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, SIZE)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, k, SIZE):
        a = tl.load(a_ptr + row * k + start + step[None, :])  # line factor
        total = tl.dot(a, tl.full((SIZE, SIZE), 1.0, tl.float32), total)
    tl.store(out_ptr + row * SIZE + column, total)


FOR_SOURCES = ("faulthandler", "mmap", "signal", "tempfile", "threading")


def in_child(source: str) -> tuple[int, str]:
    """How a child that runs `source` ends, as a shell has it, and what it writes to standard error."""
    read, write = os.pipe()
    names = {name: importlib.import_module(name) for name in FOR_SOURCES}
    child = os.fork()
    if child == 0:
        os.dup2(write, 2)
        os.close(read)
        try:
            exec(source, globals() | names)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as pipe:
        text = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def main() -> None:
    """Read sources by name from standard input, as JSON, and write how each of them ends."""
    results = {name: in_child(source) for name, source in json.load(sys.stdin).items()}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
