"""Element types in memory and in registers."""

from __future__ import annotations

from triton_porting_kit.abi import elements
from triton_porting_kit.abi.elements import OF_MLIR

BITS = {
    **{name: 8 * element.size for name, element in OF_MLIR.items()},
    **dict.fromkeys(elements.MICROSCALING, 8),
    "!llvm.ptr": 8 * elements.POINTER_SIZE,
}
"""Bits of one element in memory. A boolean takes a byte, and so does a 4-bit number."""

FLOAT8 = tuple(name for name, element in OF_MLIR.items() if element.is_minifloat)
"""The 8-bit floating-point types that kernels compute with."""

MICROSCALING = tuple(elements.MICROSCALING)
"""Scales and elements of microscaling formats, which are only converted to wider types."""

NARROW_FLOATS = ("f16", "bf16", *FLOAT8, *MICROSCALING)
"""Types whose arithmetic is done in f32 and rounded after each operation."""


def byte_size(element: str) -> int:
    """Bytes of one element in memory. Raises KeyError for a type this lowering does not know."""
    return BITS[element] // 8


def register(element: str) -> str:
    """The type that an element has in registers.

    Narrow floats are held as integers of their bits. Where a CPU has no such type, LLVM would convert them to float and
    back, by library calls or with instructions that flush denormals.
    """
    return f"i{BITS[element]}" if element in NARROW_FLOATS else element


def storage(element: str) -> str:
    """The type that an element is read and written as (see `lane_memory`)."""
    return "i8" if element == "i1" else register(element)


def is_float(element: str) -> bool:
    return element.startswith(("f", "bf"))
