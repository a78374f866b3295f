"""The header of intrinsics that emitted C++ includes, by whatever names a vendor gives its functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.abi import npu
from triton_porting_kit.errors import OptionError

STRUCT = "tpk_npu_transfer"
NUMBERS: Mapping[str, Mapping[str, int]] = {
    "unit": npu.UNITS,
    "type": npu.TYPES,
    "flag": npu.FLAGS,
    "kind": npu.KINDS,
    "atomic": npu.ATOMICS,
}
"""The numbers that ``tpk_npu.h`` has names for, by what they number."""


def enumerator(name: str) -> str:
    """What ``tpk_npu.h`` calls a number."""
    return f"{npu.PREFIX}{name}".upper()


ALL_NAMES = frozenset(
    {*npu.INTRINSICS, STRUCT, *(enumerator(name) for numbers in NUMBERS.values() for name in numbers)}
)


@dataclass(frozen=True)
class CppHeader:
    """`file` is included by emitted C++ as ``<file>``. `names` has the vendor's names, where they are others, of the
    functions, of the numbers and of the struct of `tpk_npu.h`: ``{"tpk_npu_dma": "x1_start_dma"}``.

    Meaning and order of parameters, and the fields of the struct, stay as they are. Raises `OptionError` for a name
    that `tpk_npu.h` does not have.
    """

    file: str = "tpk_npu.h"
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.names) - ALL_NAMES):
            raise OptionError(
                f"tpk_npu.h has no {unknown[0]!r} that could have another name",
                remedy=f"rename functions such as {', '.join(sorted(npu.INTRINSICS)[:3])}",
            )

    def name(self, of: str) -> str:
        """What the header calls a function, a number or the struct of ``tpk_npu.h``."""
        return self.names.get(of, of)


@dataclass
class HeaderUse:
    """What one text uses of a header: whether anything, and variables of its struct and their fields, by the addresses
    that stand for them.
    """

    header: CppHeader
    used: bool = False
    descriptors: dict[Any, str] = field(default_factory=dict)
    fields: dict[Any, str] = field(default_factory=dict)

    def name(self, of: str) -> str:
        """As `CppHeader.name`."""
        return self.header.name(of)
