"""Constants of loops as literals that preserve every bit."""

from __future__ import annotations

import math
import re
import struct

from triton_porting_kit.compiler.cpp.support import Support
from triton_porting_kit.compiler.cpp.types import CppType

_FORMATS = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}


def scalar(support: Support, type: CppType, bits: int) -> str:
    """The literal of a scalar, given its bits."""
    if type.is_truth:
        return "true" if bits & 1 else "false"
    if type.is_float:
        return _float(support, type, bits)
    if type.element == "ptr":
        return f"(ptr)(u64){bits}u" if bits else "(ptr)0"
    if type.bits == 128:
        return f"((u128){bits >> 64 & _ones(64)}u << 64 | {bits & _ones(64)}u)"
    value = bits & _ones(type.bits)
    if value >= 1 << (type.bits - 1) and value - (1 << type.bits) >= -65536:
        return f"({type.name}){value - (1 << type.bits)}"
    return f"({type.name}){value}{'u' if value >= 1 << 31 else ''}"


def vector(support: Support, type: CppType, bits: list[int]) -> str:
    """The literal of a vector, given the bits of each lane."""
    if type.is_truth:
        lanes = ["-1" if value & 1 else "0" for value in bits]
    else:
        lanes = [scalar(support, type.scalar, value) for value in bits]
    if len(set(lanes)) == 1:
        return f"{support.function('splat', type)}({lanes[0]})"
    return support.dialect.vector(type, [_bare(lane) for lane in lanes])


def _bare(literal: str) -> str:
    """A literal without the cast that is needed only outside of a vector."""
    found = re.fullmatch(r"\(u(?:8|16|32|64)\)(\d+u?)", literal)
    return found[1] if found else literal


def of_attribute(support: Support, type: CppType, text: str) -> str | None:
    """The literal for MLIR's text of a constant: ``5 : i32``, ``true``, ``dense<0x7F800000> : vector<4xf32>``.

    None for any other text.
    """
    text = text.strip()
    if text.startswith("dense<"):
        body = text[len("dense<") : text.rindex(">", 0, text.rindex(":"))].strip()
        if body.startswith('"'):
            values = _raw(type, body)
        elif body.startswith("["):
            values = [_bits(type, item) for item in body.strip("[]").split(",")]
        else:
            values = [_bits(type, body)] * max(type.lanes, 1)
        if values is None or len(values) != max(type.lanes, 1):
            return None
        return vector(support, type, values) if type.lanes else scalar(support, type, values[0])
    return scalar(support, type, _bits(type, text.partition(" : ")[0]))


def _raw(type: CppType, body: str) -> list[int] | None:
    """The elements of a dense attribute that is printed as a hexadecimal string."""
    data, size = bytes.fromhex(body.strip('"')[2:]), type.bits // 8
    if type.is_truth or not size:
        return None
    values = [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    return values * type.lanes if len(values) == 1 else values


def _bits(type: CppType, text: str) -> int:
    text = text.strip()
    if text in ("true", "false"):
        return int(text == "true")
    if text.startswith(("0x", "0X")):
        return int(text, 16)
    if type.is_float:
        to, back = _FORMATS[type.bits]
        return int(struct.unpack(back, struct.pack(to, float(text)))[0])
    return int(text)


def _float(support: Support, type: CppType, bits: int) -> str:
    value_format, bits_format = _FORMATS[type.bits]
    value = struct.unpack(value_format, struct.pack(bits_format, bits))[0]
    if not math.isfinite(value):
        integer = CppType(f"u{type.bits}", type.bits)
        return f"{support.function('as', type, integer)}(({integer.name})0x{bits:X})"
    if type.bits == 16:
        return f"(f16){value!r}f"
    suffix = "f" if type.bits == 32 else ""
    short = f"{value:.6g}"
    if struct.pack(value_format, float(short)) != struct.pack(bits_format, bits):
        return f"{value.hex()}{suffix}"
    return f"{short}{'' if any(c in short for c in '.e') else '.0'}{suffix}"


def _ones(bits: int) -> int:
    return (1 << bits) - 1


def zero(support: Support, type: CppType) -> str:
    """The literal of the value whose bits are all zero."""
    return vector(support, type, [0] * type.lanes) if type.lanes else scalar(support, type, 0)
