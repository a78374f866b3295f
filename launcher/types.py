"""The scalar types of kernel parameters: their sizes in the block, and how they are written."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from triton_porting_kit.abi.elements import PARAMETERS, POINTER_SIZE, ElementType, FloatFormat
from triton_porting_kit.errors import SignatureError


class Kind(enum.IntEnum):
    """How a value is converted and stored. The native launch code uses the same numbers (`tpk::Kind`)."""

    POINTER = 0
    BOOL = 1
    I8 = 2
    I16 = 3
    I32 = 4
    I64 = 5
    U8 = 6
    U16 = 7
    U32 = 8
    U64 = 9
    FP16 = 10
    BF16 = 11
    FP32 = 12
    FP64 = 13


@dataclass(frozen=True)
class ScalarType:
    """One type of parameter: `size` (also its alignment) in bytes, the range of integers, the format of floats."""

    kind: Kind
    size: int
    minimum: int = 0
    maximum: int = 0
    form: FloatFormat | None = None


def _of(element: ElementType) -> ScalarType:
    kind = Kind.BOOL if element.bits == 1 else Kind[element.name.upper()]
    if element.form is not None:
        return ScalarType(kind, element.size, form=element.form)
    bits = element.bits
    if element.is_signed:
        return ScalarType(kind, element.size, -(1 << bits - 1), (1 << bits - 1) - 1)
    return ScalarType(kind, element.size, 0, (1 << bits) - 1)


_POINTER = ScalarType(Kind.POINTER, POINTER_SIZE, 0, (1 << 8 * POINTER_SIZE) - 1)
_SCALARS = {name: _of(element) for name, element in PARAMETERS.items()}
_POINTER_TYPE = re.compile(r"\*+[A-Za-z_]\w*")


def scalar_type(type_name: str, parameter: str) -> ScalarType:
    """The scalar type that Triton writes as `type_name` (``*fp32``, ``i32``, ``bf16``, ...).

    Raises `SignatureError`, naming `parameter`, for a type that no kernel argument can have.
    """
    if _POINTER_TYPE.fullmatch(type_name):
        return _POINTER
    found = _SCALARS.get(type_name)
    if found is None:
        raise SignatureError(
            f"argument '{parameter}' has the type '{type_name}', which a kernel argument cannot have; "
            f"use a pointer (*T), one of {', '.join(_SCALARS)}, tensordesc<T[...]> or constexpr"
        )
    return found
