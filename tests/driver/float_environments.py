"""The floating-point environment of the calling thread, as <fenv.h> has it."""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_C = ctypes.CDLL("libm.so.6")

if platform.machine() == "x86_64":
    UPWARD, DOWNWARD, TOWARD_ZERO = 0x800, 0x400, 0xC00
    INEXACT, ALL_FLAGS = 0x20, 0x3D
    _SIZE, _CONTROL, _FLUSH = 32, 28, 0x8040  # MXCSR: FZ and DAZ
else:
    UPWARD, DOWNWARD, TOWARD_ZERO = 0x400000, 0x800000, 0xC00000
    INEXACT, ALL_FLAGS = 0x10, 0x1F
    _SIZE, _CONTROL, _FLUSH = 8, 0, 1 << 24  # FPCR: FZ


def flags() -> int:
    """The exceptions that this thread has raised."""
    return int(_C.fetestexcept(ALL_FLAGS))


def state() -> bytes:
    """All of the environment."""
    buffer = ctypes.create_string_buffer(_SIZE)
    assert _C.fegetenv(buffer) == 0
    return buffer.raw


@contextmanager
def environment(rounding: int = 0, *, flush: bool = False) -> Iterator[None]:
    """Round so, and flush denormal numbers to zero, or not; all as before at the end."""
    before = state()
    changed = ctypes.create_string_buffer(before, _SIZE)
    control = struct.unpack_from("<I", before, _CONTROL)[0] | (_FLUSH if flush else 0)
    struct.pack_into("<I", changed, _CONTROL, control)
    assert _C.fesetenv(changed) == 0
    assert _C.fesetround(rounding) == 0
    _C.feclearexcept(ALL_FLAGS)
    try:
        yield
    finally:
        assert _C.fesetenv(before) == 0
