"""Floating-point instructions. Approximate ones are computed with the accuracy of `tl.math`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .instruction import MODES, ROUNDING, Call, Instruction
from .values import Values, bits_of

SINGLE = "Floating Point Instructions"
HALF = "Half Precision Floating Point Instructions"
_FIELDS = {"f16": (0x7C00, 0x8000), "bf16": (0x7F80, 0x8000), "f32": (0x7F800000, 1 << 31)}
"""The bits of exponent and sign."""
Lower = Callable[[Call], Any]


def flushed(call: Call, value: Any) -> Any:
    """With ``.ftz``, subnormal numbers as zeros of their sign."""
    v = call.values
    kind = v.kind(value)
    if "ftz" not in call.modifiers or kind not in _FIELDS:
        return value
    exponent, sign = _FIELDS[kind]
    bits = v.as_bits(value)
    zero = v.and_(bits, sign)
    return v.as_kind(v.select(v.compare("eq", v.and_(bits, exponent), 0), zero, bits), kind)


def limited(call: Call, value: Any) -> Any:
    """The result with ``.ftz``; with ``.sat`` clamped to [0, 1], NaN as 0; with ``.relu`` negative numbers as 0."""
    v = call.values
    value = flushed(call, value)
    if "sat" in call.modifiers:
        positive = v.select(v.compare("ogt", value, 0.0), value, 0.0)
        return v.select(v.compare("olt", positive, 1.0), positive, 1.0)
    if "relu" in call.modifiers:
        return v.select(v.compare("ole", value, 0.0), v.constant(0.0, v.kind(value)), value)
    return value


def _on_elements(compute: Callable[[Call, list[Any]], Any], sources: int) -> Lower:
    """An instruction of one float, or of two halves of a register, whose sources and result may be flushed."""

    def lower(call: Call) -> Any:
        def one(operands: list[Any]) -> Any:
            return limited(call, compute(call, [flushed(call, value) for value in operands]))

        if not call.type.endswith("x2"):
            return one([call.read(k) for k in range(sources)])
        v = call.values
        halves = zip(*(v.split(call.read(k, "i32"), 2) for k in range(sources)), strict=True)
        return v.join([v.as_bits(one([v.as_kind(x, call.kind) for x in operands])) for operands in halves])

    return lower


def _arithmetic(upstream: str, function: str) -> Callable[[Call, list[Any]], Any]:
    """Upstream's operation where the rounding is left open; with a mode, the function that is never fused."""

    def compute(call: Call, operands: list[Any]) -> Any:
        kind = call.kind
        mode = call.mode
        exact = upstream in ("arith.divf", "math.sqrt", "math.fma")
        if not mode or bits_of(kind) == 16 or (mode == "rn" and exact):
            return call.values.op(upstream, operands, kind)
        return call.values.function(f"{function}_{MODES[mode]}", operands, kind)

    return compute


def _fused(call: Call, operands: list[Any]) -> Any:
    if bits_of(call.kind) > 16:
        return _arithmetic("math.fma", "fma")(call, operands)
    return _fused_half(call.values, operands, call.kind)


def _fused_half(v: Values, operands: list[Any], kind: str) -> Any:
    """a · b + c of 16-bit floats, rounded once.

    The product is exact in f64. A sum that is not is rounded to odd: its last bit is set, so that rounding it again
    gives what rounding once does.
    """
    a, b, c = (v.extended(value, "f64") for value in operands)
    product = v.binary("arith.mulf", a, b)
    total = v.binary("arith.addf", product, c)
    # The error of the sum, which is a float: Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem C.
    other = v.binary("arith.subf", total, product)
    error = v.binary(
        "arith.addf",
        v.binary("arith.subf", product, v.binary("arith.subf", total, other)),
        v.binary("arith.subf", c, other),
    )
    bits = v.as_bits(total)
    is_above = v.compare("eq", v.compare("ogt", error, 0.0), v.compare("ogt", total, 0.0))
    odd = v.add(bits, v.select(is_above, v.constant(1, "i64"), -1))
    is_even = v.compare("eq", v.and_(bits, 1), 0)
    inexact = v.compare("one", error, 0.0)
    return v.rounded(v.as_kind(v.select(v.and_(inexact, is_even), odd, bits), "f64"), kind)


def _reciprocal(call: Call, operands: list[Any]) -> Any:
    v = call.values
    if call.mode in ("", "rn"):
        return v.op("arith.divf", [v.constant(1.0, call.kind), *operands], call.kind)
    return v.function(f"rcp_{MODES[call.mode]}", operands, call.kind)


def _elementary(name: str) -> Callable[[Call, list[Any]], Any]:
    """A function, of 16-bit floats in f32."""

    def compute(call: Call, operands: list[Any]) -> Any:
        v = call.values
        wide = "f64" if call.kind == "f64" else "f32"
        result = v.op(name, [v.extended(value, wide) for value in operands], wide)
        return v.rounded(result, call.kind)

    return compute


def _signed(name: str) -> Callable[[Call, list[Any]], Any]:
    return lambda call, operands: call.values.op(name, operands, call.kind)


def _extremum(upstream: str, combine: str) -> Callable[[Call, list[Any]], Any]:
    """The smaller or larger number, -0 below +0. NaN only if both are, or with ``.NaN`` if one is."""

    def compute(call: Call, operands: list[Any]) -> Any:
        v = call.values
        a, b = operands
        name = f"arith.{upstream}imumf" if "NaN" in call.modifiers else f"arith.{upstream}numf"
        found = v.op(name, operands, call.kind)
        equal = v.as_kind(v.binary(combine, v.as_bits(a), v.as_bits(b)), call.kind)
        return v.select(v.compare("oeq", a, b), equal, found)

    return compute


def _copy_sign(call: Call) -> Any:
    """The sign of the first source, which PTX calls a, with the rest of the second."""
    v = call.values
    sign = 1 << (bits_of(call.kind) - 1)
    a, b = (v.as_bits(call.read(k)) for k in (0, 1))
    return v.as_kind(v.or_(v.and_(a, sign), v.and_(b, sign - 1)), call.kind)


_PROPERTIES = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")


def _property(call: Call) -> Any:
    v, a = call.values, call.read(0)
    size = v.op("math.absf", [a], call.kind)
    smallest = v.constant(2.0**-126 if call.kind == "f32" else 2.0**-1022, call.kind)
    infinity = v.constant(float("inf"), call.kind)
    match call.modifiers[0]:
        case "finite":
            return v.compare("olt", size, infinity)
        case "infinite":
            return v.compare("oeq", size, infinity)
        case "number":
            return v.compare("ord", a, a)
        case "notanumber":
            return v.compare("uno", a, a)
        case "normal":
            is_normal = v.and_(v.compare("oge", size, smallest), v.compare("olt", size, infinity))
            return v.or_(is_normal, v.compare("oeq", size, 0.0))  # zeros count as normal
        case _:
            return v.and_(v.compare("olt", size, smallest), v.compare("ogt", size, 0.0))


def _row(
    forms: str,
    sources: int,
    compute: Callable[[Call, list[Any]], Any],
    meaning: str,
    section: str = SINGLE,
) -> Instruction:
    return Instruction(tuple(forms.split()), sources, meaning, section, _on_elements(compute, sources))


def _arithmetic_rows() -> tuple[Instruction, ...]:
    halves = "{.rn}{.ftz}{.sat}[.f16|.f16x2]", "{.rn}[.bf16|.bf16x2]"
    found = []
    for name, sign in (("add", "+"), ("sub", "-"), ("mul", "·")):
        compute = _arithmetic(f"arith.{name}f", name)
        meaning = f"a {sign} b"
        note = "; with a rounding mode, never fused with other operations"
        found.append(
            _row(f"{name}{ROUNDING}{{.ftz}}{{.sat}}.f32 {name}{ROUNDING}.f64", 2, compute, meaning + note)
        )
        found.append(_row(" ".join(name + half for half in halves), 2, compute, meaning, HALF))
    modes = ROUNDING.replace("{", "[").replace("}", "]")
    return (
        *found,
        _row(f"fma{modes}{{.ftz}}{{.sat}}.f32 fma{modes}.f64 mad{modes}{{.ftz}}{{.sat}}.f32 mad{modes}.f64", 3, _fused,
             "a · b + c, rounded once"),
        _row("fma.rn{.ftz}{.sat|.relu}[.f16|.f16x2] fma.rn{.relu}[.bf16|.bf16x2]", 3, _fused,
             "a · b + c, rounded once", HALF),
        _row(f"div[.approx|.full]{{.ftz}}.f32 div{modes}{{.ftz}}.f32 div{modes}.f64", 2,
             _arithmetic("arith.divf", "div"), "a / b, correctly rounded"),
        _row(f"rcp.approx{{.ftz}}.f32 rcp{modes}{{.ftz}}.f32 rcp{modes}.f64", 1, _reciprocal,
             "1 / a, correctly rounded"),
        _row(f"sqrt.approx{{.ftz}}.f32 sqrt{modes}{{.ftz}}.f32 sqrt{modes}.f64", 1, _arithmetic("math.sqrt", "sqrt"),
             "√a, correctly rounded"),
    )  # fmt: skip


def _other_rows() -> tuple[Instruction, ...]:
    all_halves = "{.ftz}[.f16|.f16x2]", "[.bf16|.bf16x2]"
    found = []
    for name, upstream in (("abs", "math.absf"), ("neg", "arith.negf")):
        meaning = "|a|" if name == "abs" else "-a"
        found.append(_row(f"{name}{{.ftz}}.f32 {name}.f64", 1, _signed(upstream), meaning))
        found.append(_row(" ".join(name + half for half in all_halves), 1, _signed(upstream), meaning, HALF))
    for name, combine in (("min", "arith.ori"), ("max", "arith.andi")):
        compute = _extremum(name, combine)
        meaning = (
            f"the {'smaller' if name == 'min' else 'larger'} number; NaN if both are, with `.NaN` if one is"
        )
        found.append(_row(f"{name}{{.ftz}}{{.NaN}}.f32 {name}.f64", 2, compute, meaning))
        found.append(
            _row(
                f"{name}{{.ftz}}{{.NaN}}[.f16|.f16x2] {name}{{.NaN}}[.bf16|.bf16x2]",
                2,
                compute,
                meaning,
                HALF,
            )
        )
    halves = "ex2.approx[.f16|.f16x2] ex2.approx.ftz[.bf16|.bf16x2]"
    return (
        *found,
        _row("rsqrt.approx{.ftz}.f32 rsqrt.approx.f64", 1, _elementary("math.rsqrt"), "1 / √a"),
        _row("sin.approx{.ftz}.f32", 1, _elementary("math.sin"), "the sine of a"),
        _row("cos.approx{.ftz}.f32", 1, _elementary("math.cos"), "the cosine of a"),
        _row("lg2.approx{.ftz}.f32", 1, _elementary("math.log2"), "log₂ a"),
        _row("ex2.approx{.ftz}.f32", 1, _elementary("math.exp2"), "2ᵃ"),
        _row(halves, 1, _elementary("math.exp2"), "2ᵃ", HALF),
        _row("tanh.approx.f32", 1, _elementary("math.tanh"), "the hyperbolic tangent of a"),
        _row("tanh.approx[.f16|.f16x2|.bf16|.bf16x2]", 1, _elementary("math.tanh"),
             "the hyperbolic tangent of a", HALF),
        Instruction(("copysign[.f32|.f64]",), 2, "b, with the sign of a", SINGLE, _copy_sign),
        Instruction((f"testp[{'|'.join(f'.{name}' for name in _PROPERTIES)}][.f32|.f64]",), 1,
                    "whether a is so; zeros are normal", SINGLE, _property),
    )  # fmt: skip


ROWS = (*_arithmetic_rows(), *_other_rows())
