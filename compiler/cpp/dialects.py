"""The languages that loops are written in, and what each calls the same things."""

from __future__ import annotations

from dataclasses import dataclass

from triton_porting_kit.compiler.cpp.types import CppType, cast

_FIXED_WIDTHS = """\
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;
typedef char *ptr;
"""

_OPENCL_TYPES = {
    "u8": "uchar", "u16": "ushort", "u32": "uint", "u64": "ulong", "i8": "char", "i16": "short", "i32": "int",
    "i64": "long", "f16": "half", "f32": "float", "f64": "double", "bool": "int",
}  # fmt: skip
"""OpenCL C's names of types. A vector of booleans has lanes of int."""

_OPENCL_LANES = {1: 2, 2: 2, 4: 4, 8: 8, 16: 16}
"""By the lanes of a vector, those of OpenCL C's type: there is none of one lane, and the other lane is never used."""

_OPENCL_ALWAYS = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32")

_OPENCL_SCALARS = "\n".join(f"typedef {_OPENCL_TYPES[name]} {name};" for name in _OPENCL_ALWAYS)

_OPENCL_PREAMBLE = f"""\
#pragma OPENCL FP_CONTRACT OFF

{_OPENCL_SCALARS}
typedef __global char *ptr;
typedef __private char *private_ptr;
typedef __local char *local_ptr;
typedef __constant char *constant_ptr;
"""

_WIDE_INTEGERS = {"u128": "typedef unsigned __int128 u128;\ntypedef __int128 i128;"}


@dataclass(frozen=True)
class Dialect:
    """A language, as the emitter writes it. `spaces` says whether pointers belong to address spaces.

    `choice` is the expression of a vector that has `a` where `mask` is set and `b` elsewhere.
    """

    name: str
    title: str
    suffix: str
    preamble: str
    rare_types: dict[str, str]
    inline: str
    constant: str
    choice: str
    sign_bit: str
    spaces: bool = False

    def lacks(self, type: CppType) -> str | None:
        """What a type is called that the language does not have; None for one that it has."""
        if not self.spaces:
            return None
        if type.element in ("u128", "i128"):
            return "integers of 128 bits"
        if type.lanes and type.lanes not in _OPENCL_LANES:
            return f"vectors of {type.lanes} lanes"
        return None

    def vector_type(self, type: CppType) -> str:
        """The line that defines a vector type."""
        if self.spaces:
            return f"typedef {self._opencl(type)} {type.name};"
        size = 4 if type.is_truth else type.bits // 8
        return f"typedef {type.lane} {type.name} __attribute__((vector_size({size * type.lanes})));"

    def vector(self, type: CppType, lanes: list[str]) -> str:
        """A vector of the given lanes."""
        listed = ", ".join(lanes)
        if self.spaces:
            return f"(({type.name})({listed}))"
        return f"{type.name}{{{listed}}}" if self.name == "cpp" else f"(({type.name}){{{listed}}})"

    def zero(self, type: CppType) -> str:
        """The initial value of a variable whose lanes are set afterwards."""
        return f"({type.name})(0)" if self.spaces else "{0}"

    def lane(self, vector: str, lane: str, type: CppType) -> str:
        """A lane of a variable, to read or to assign."""
        return f"((__private {type.lane} *)&{vector})[{lane}]" if self.spaces else f"{vector}[{lane}]"

    def constant_lane(self, vector: str, lane: int) -> str:
        """A lane of any vector, to read."""
        return f"{vector}.s{lane:X}" if self.spaces else f"{vector}[{lane}]"

    def convert(self, value: str, type: CppType) -> str:
        """A conversion that preserves values: of a scalar, or of each lane."""
        if not type.lanes:
            return cast(type.name, value)
        if self.spaces:
            return f"convert_{self._opencl(type)}({value})"
        return f"__builtin_convertvector({value}, {type.name})"

    def reinterpret(self, value: str, type: CppType) -> str:
        """The same bits as a type of the same size: another vector, or a scalar integer of the other signedness."""
        if self.spaces and type.lanes:
            return f"as_{self._opencl(type)}({value})"
        return cast(type.name, value)

    def pointer(self, type: str, place: str, space: str = "", qualifiers: str = "") -> str:
        """An address as a pointer to a type, in parentheses."""
        if self.spaces:
            qualifiers += f"__{space or 'global'} "
        return f"({qualifiers}{type} *){place}"

    def _opencl(self, type: CppType) -> str:
        return f"{_OPENCL_TYPES[type.element]}{_OPENCL_LANES[type.lanes] if type.lanes else ''}"

    def access(self, type: CppType, space: str) -> dict[str, str]:
        """OpenCL C's own name of a type, and how one is read from `place` and how `value` is written there.

        All types of a size are read and written as unsigned integers, so that none is assumed.
        """
        bits = 8 if type.is_truth else type.bits
        place = f"(__{space or 'global'} u{bits} *)place"
        if type.element == "ptr":
            read, write = f"({type.name})(uintptr_t)*{place}", f"*{place} = (u64)(uintptr_t)value"
            return {"own": type.name, "read": read, "write": write}
        own = self._opencl(type)
        if type.is_truth:
            return {"own": own, "read": f"*{place} != 0", "write": f"*{place} = value"}
        whole = self._opencl(CppType(f"u{type.bits}", type.bits, type.lanes))
        if type.lanes == 1:
            return {
                "own": own,
                "read": f"as_{own}(({whole})(*{place}))",
                "write": f"*{place} = as_{whole}(value).s0",
            }
        if type.lanes:
            read = f"as_{own}(vload{type.lanes}(0, {place}))"
            return {"own": own, "read": read, "write": f"vstore{type.lanes}(as_{whole}(value), 0, {place})"}
        return {"own": own, "read": f"as_{own}(*{place})", "write": f"*{place} = as_{whole}(value)"}


CPP = Dialect(
    "cpp", "C++", ".cpp", f"#include <stdint.h>\n\n{_FIXED_WIDTHS}",
    {"f16": "typedef _Float16 f16;", **_WIDE_INTEGERS}, "inline", "const", "mask ? a : b", "__builtin_signbit",
)  # fmt: skip
C = Dialect(
    "c", "C", ".c", f"#include <stdbool.h>\n#include <stdint.h>\n\n{_FIXED_WIDTHS}", CPP.rare_types,
    "static inline", "static const", "($V)((mask & ($V_mask)a) | (~mask & ($V_mask)b))", "__builtin_signbit",
)  # fmt: skip
OPENCL = Dialect(
    "opencl", "OpenCL C", ".cl", _OPENCL_PREAMBLE,
    {
        "f16": "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\ntypedef half f16;",
        "f64": "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\ntypedef double f64;",
    },
    "static inline", "__constant", "mask ? a : b", "signbit", spaces=True,
)  # fmt: skip

DIALECTS = {dialect.name: dialect for dialect in (CPP, C, OPENCL)}
