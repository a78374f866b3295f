"""The scalar types of kernel parameters: how many bytes each takes in the block, and how it is written."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from triton_porting_kit.errors import SignatureError


class Kind(enum.IntEnum):
    """How a value is converted and stored. The native launch code has the same numbers (`tpk::Kind`)."""

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
    """One kind of parameter: `size` (also its alignment) in bytes, and for integers the range it holds."""

    kind: Kind
    size: int
    minimum: int = 0
    maximum: int = 0


def _signed(kind: Kind, bits: int) -> ScalarType:
    return ScalarType(kind, bits // 8, -(1 << bits - 1), (1 << bits - 1) - 1)


def _unsigned(kind: Kind, bits: int) -> ScalarType:
    return ScalarType(kind, bits // 8, 0, (1 << bits) - 1)


_POINTER = _unsigned(Kind.POINTER, 64)
_BOOL = ScalarType(Kind.BOOL, 1, 0, 1)
_SCALARS = {
    "i1": _BOOL,
    "u1": _BOOL,
    "i8": _signed(Kind.I8, 8),
    "i16": _signed(Kind.I16, 16),
    "i32": _signed(Kind.I32, 32),
    "i64": _signed(Kind.I64, 64),
    "u8": _unsigned(Kind.U8, 8),
    "u16": _unsigned(Kind.U16, 16),
    "u32": _unsigned(Kind.U32, 32),
    "u64": _unsigned(Kind.U64, 64),
    "fp16": ScalarType(Kind.FP16, 2),
    "bf16": ScalarType(Kind.BF16, 2),
    "fp32": ScalarType(Kind.FP32, 4),
    "f32": ScalarType(Kind.FP32, 4),
    "fp64": ScalarType(Kind.FP64, 8),
}
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
