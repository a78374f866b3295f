"""Running a kernel where what it must not touch shows: arrays between untouchable pages, scratch full of a pattern."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from guard_pages import Row
from native_functions import host, link, loops_of

from triton_porting_kit.compiler import CpuTarget

Array = np.ndarray[Any, Any]
PATTERN = 0xA5
_TYPES = {"f4": "*fp32", "f8": "*fp64", "i4": "*i32", "i8": "*i64", "i1": "*i8"}


@cache
def targets() -> dict[str, CpuTarget]:
    """The host's loops with and without its widest registers, and those that need no instruction by name."""
    found = {"host": host(), "portable": CpuTarget.portable()}
    if "avx512f" in host().features:
        found["avx2"] = host().with_features("-avx512f,-amx-tile")
    return found


class Poisoned:
    """A compiled kernel. `signature` has the types of its parameters, in their order; the others are constants."""

    def __init__(
        self, kernel: Any, signature: Mapping[str, str], target: CpuTarget | None = None, **constexprs: Any
    ) -> None:
        target = target or host()
        self.loops = loops_of(kernel, dict(signature), target, **constexprs)
        self._signature = dict(signature)
        runs_here = host() if target == CpuTarget.portable() else target
        self._code = link(self.loops.text, [self.loops.name], runs_here)
        types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_int32] * 3
        self._run = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self._code.addresses[self.loops.name])

    def __call__(self, programs: int = 1, **arguments: Any) -> dict[str, Array]:
        """What is in the arrays after so many programs, which one thread runs in order."""
        rows = {
            name: Row(value, at_end=True)
            for name, value in arguments.items()
            if isinstance(value, np.ndarray)
        }
        block = b""
        for name, kind in self._signature.items():
            code = {"i32": "i", "i64": "q", "fp32": "f", "fp64": "d"}.get(kind, "Q")
            block += b"\0" * (-len(block) % struct.calcsize(code))
            value = rows[name].data_ptr() if name in rows else arguments[name]
            block += struct.pack(code, value)
        scratch = Row(
            np.full(-(-max(self.loops.scratch_bytes, 1) // 64) * 64, PATTERN, np.uint8), at_end=True
        )
        ctypes.memset(scratch.data_ptr(), 0, self.loops.cleared_bytes)
        assert self._run(block, scratch.data_ptr(), 0, programs, programs, 1, 1) == 0
        found = {name: row.numpy() for name, row in rows.items()}
        for row in (*rows.values(), scratch):
            row.free()
        return found


def run(
    kernel: Any, target: CpuTarget, arguments: Mapping[str, Any], programs: int = 1, **constexprs: Any
) -> Any:
    """`Poisoned` for NumPy arrays and 32-bit integers, called once."""
    signature = {
        name: _TYPES[value.dtype.str[1:]] if isinstance(value, np.ndarray) else "i32"
        for name, value in arguments.items()
    }
    return Poisoned(kernel, signature, target, **constexprs)(programs, **arguments)
