"""Element types in memory and in registers."""

from __future__ import annotations

BITS = {
    "i1": 8,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "f16": 16,
    "bf16": 16,
    "f8E4M3FN": 8,
    "f8E5M2": 8,
    "f8E4M3FNUZ": 8,
    "f8E5M2FNUZ": 8,
    "f8E8M0FNU": 8,
    "f4E2M1FN": 8,
    "f32": 32,
    "f64": 64,
    "!llvm.ptr": 64,
}
"""Bits that one element takes in memory; a truth value takes a byte, and so does a number of 4 bits."""

FLOAT8 = ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ")
"""Floating-point types of 8 bits that kernels compute with."""

MICROSCALING = ("f8E8M0FNU", "f4E2M1FN")
"""Scales and elements of microscaling formats, which are only ever turned into wider numbers."""

NARROW_FLOATS = ("f16", "bf16", *FLOAT8, *MICROSCALING)
"""Types whose arithmetic is done in f32 and rounded after each operation."""


def byte_size(element: str) -> int:
    """Bytes of one element in memory. Raises KeyError for a type this lowering does not know."""
    return BITS[element] // 8


def register(element: str) -> str:
    """The type that an element has in registers.

    Narrow floats are held as the integers of their bits: where a CPU has no such type, LLVM makes floats of them
    and back, by way of library calls, or with instructions that flush denormals.
    """
    return f"i{BITS[element]}" if element in NARROW_FLOATS else element


def storage(element: str) -> str:
    """The type that an element is read and written as (see `lane_memory`)."""
    return "i8" if element == "i1" else register(element)


def is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))
