"""Types of the values in loops: fixed-width scalars, and vectors.

Integers are unsigned, so that they wrap around. A vector of booleans has lanes of 32 bits, all set or all clear. A
vector of pointers holds them as integers.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from triton_porting_kit.abi.elements import OF_MLIR, ElementType


def _of_element(element: ElementType) -> tuple[str, int]:
    if element.bits == 1:
        return "bool", 1
    return f"{'u' if element.form is None else 'f'}{element.bits}", element.bits


SCALARS = {
    # Other floats are integers of their bits where loops compute with them.
    **{name: _of_element(OF_MLIR[name]) for name in ("i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64")},
    "i128": ("u128", 128),
    "index": ("u64", 64),
    "!llvm.ptr": ("ptr", 64),
}
"""By MLIR's names: the name in the text and the bits."""

_VECTOR = re.compile(r"vector<(\d+)x([^x<>]\S*)>")


@dataclass(frozen=True)
class CppType:
    """A scalar (`lanes` is 0), or a vector of `lanes` lanes."""

    element: str
    bits: int
    lanes: int = 0
    space: str = ""
    """The address space of a pointer, where the language has them; empty for the global one."""

    @property
    def name(self) -> str:
        """The name in the text: ``u32``, ``f32x16``, ``mask16``, ``private_ptr``."""
        if not self.lanes:
            return f"{self.space}_{self.element}" if self.space else self.element
        return f"mask{self.lanes}" if self.element == "bool" else f"{self.element}x{self.lanes}"

    @property
    def is_float(self) -> bool:
        return self.element.startswith("f")

    @property
    def is_truth(self) -> bool:
        return self.element == "bool"

    @property
    def signed(self) -> CppType:
        """The type in which an integer is compared, divided and shifted as signed."""
        return CppType(f"i{self.element[1:]}", self.bits, self.lanes) if self.element[0] == "u" else self

    def with_element(self, mlir: str) -> CppType:
        """A type with the same number of lanes of another element type, given by MLIR's name."""
        return CppType(*SCALARS[mlir], self.lanes)

    @property
    def lane(self) -> str:
        """The name of the type of a lane."""
        return "i32" if self.is_truth else self.element

    @property
    def scalar(self) -> CppType:
        """The type of one element."""
        return CppType(self.element, self.bits)

    @property
    def mask(self) -> CppType:
        """The type of a comparison of two vectors of this type: lanes of as many bits, all set or all clear."""
        return self if self.is_truth else CppType(f"i{self.bits}", self.bits, self.lanes)

    @property
    def truths(self) -> CppType:
        """The type of as many booleans."""
        return CppType("bool", 1, self.lanes)


def cast(name: str, value: str) -> str:
    """A conversion of a scalar."""
    return f"({name}){value}" if re.fullmatch(r"\w+", value) else f"({name})({value})"


@functools.cache
def parse(mlir: str) -> CppType | None:
    """The type for an MLIR type; None if there is none."""
    if mlir in SCALARS:
        return CppType(*SCALARS[mlir])
    found = _VECTOR.fullmatch(mlir)
    if found is None or found[2] not in SCALARS:
        return None
    element, bits = SCALARS[found[2]]
    return CppType("u64" if element == "ptr" else element, bits, int(found[1]))
