"""Functions on integers and on the bits of floats, as arithmetic. Operands and results are `Lanes`."""

from __future__ import annotations

from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes, intrinsic

INT32 = "i32"


def _as(value: Lanes, element: str) -> Lanes:
    """An integer truncated or zero-extended to another width."""
    if value.bits == int(element[1:]):
        return value
    return value.cast("arith.trunci" if value.bits > int(element[1:]) else "arith.extui", element)


def clz(x: Lanes) -> Lanes:
    return _as(x.unary("math.ctlz"), INT32)


def popc(x: Lanes) -> Lanes:
    return _as(x.unary("math.ctpop"), INT32)


def ffs(x: Lanes) -> Lanes:
    return _as(x.equals(0).select(0, x.unary("math.cttz") + 1), INT32)


def brev(x: Lanes) -> Lanes:
    return intrinsic("llvm.bitreverse", x.element, x)


def byte_perm(x: Lanes, y: Lanes, selectors: Lanes) -> Lanes:
    """Select four of the eight bytes of y:x.

    CUDA's ``__byte_perm`` reads three bits of each selector.
    Bit 3 is ignored, unlike in PTX's ``prmt``, where it replicates the byte's sign bit.
    """
    both = _as(x, "i64") | (_as(y, "i64") << 32)
    result = x.constant(0)
    for place in range(4):
        selector = (selectors >> (4 * place)) & 7
        byte = _as(both >> _as(selector << 3, "i64"), INT32) & 0xFF
        result = result | (byte << (8 * place))
    return result


def _high_half(a: Lanes, b: Lanes, extend: str) -> Lanes:
    wide = f"i{2 * a.bits}"
    product = a.cast(extend, wide) * b.cast(extend, wide)
    return (product >> a.bits).cast("arith.trunci", a.element)


def mulhi(a: Lanes, b: Lanes) -> Lanes:
    return _high_half(a, b, "arith.extsi")


def umulhi(a: Lanes, b: Lanes) -> Lanes:
    return _high_half(a, b, "arith.extui")


def mul24(a: Lanes, b: Lanes) -> Lanes:
    return (a << 8).shift_signed(8) * (b << 8).shift_signed(8)


def umul24(a: Lanes, b: Lanes) -> Lanes:
    return (a & 0xFFFFFF) * (b & 0xFFFFFF)


def sad(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return (a > b).select(a - b, b - a) + c


def usad(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return a.compare("ugt", b).select(a - b, b - a) + c


# Averages without a carry (H. S. Warren, Hacker's Delight, section 2-5).


def hadd(a: Lanes, b: Lanes) -> Lanes:
    return (a & b) + (a ^ b).shift_signed(1)


def uhadd(a: Lanes, b: Lanes) -> Lanes:
    return (a & b) + ((a ^ b) >> 1)


def rhadd(a: Lanes, b: Lanes) -> Lanes:
    return (a | b) - (a ^ b).shift_signed(1)


def urhadd(a: Lanes, b: Lanes) -> Lanes:
    return (a | b) - ((a ^ b) >> 1)


# --- classification and parts of floats ----------------------------------------------------------


def isnan(x: Lanes) -> Lanes:
    return x.is_nan().cast("arith.extui", INT32)


def isinf(x: Lanes) -> Lanes:
    return x.absolute().equals(float("inf")).cast("arith.extui", INT32)


def isfinite(x: Lanes) -> Lanes:
    return (x.absolute() < float("inf")).cast("arith.extui", INT32)


def signbit(x: Lanes) -> Lanes:
    return _as(x.pattern() >> (x.bits - 1), INT32)


def saturatef(x: Lanes) -> Lanes:
    return x.larger(0.0).smaller(1.0)


def hiloint2double(high: Lanes, low: Lanes) -> Lanes:
    return ((_as(high, "i64") << 32) | _as(low, "i64")).pattern()


def double2loint(x: Lanes) -> Lanes:
    return _as(x.pattern(), INT32)


def double2hiint(x: Lanes) -> Lanes:
    return _as(x.pattern() >> 32, INT32)


def rcp64h(x: Lanes) -> Lanes:
    return ((1.0 / x).pattern() & -(1 << 32)).pattern()


# --- unfused arithmetic, and conversions ---------------------------------------------------------


def add_rn(a: Lanes, b: Lanes) -> Lanes:
    return a + b


def sub_rn(a: Lanes, b: Lanes) -> Lanes:
    return a - b


def mul_rn(a: Lanes, b: Lanes) -> Lanes:
    return a * b


def rcp_rn(x: Lanes) -> Lanes:
    return 1.0 / x


def rsqrt_rn(x: Lanes) -> Lanes:
    """Correctly rounded: no root of a float32 lies so close to a rounding boundary that double precision misses it."""
    return (1.0 / x.cast("arith.extf", "f64").unary("math.sqrt")).cast("arith.truncf", "f32")


_ROUNDING = {"rn": "math.roundeven", "rz": "math.trunc", "rd": "math.floor", "ru": "math.ceil"}


def to_integer(x: Lanes, rounding: str, element: str, *, unsigned: bool) -> Lanes:
    """Round by an operation of ``math``, then saturate. A NaN gives the same as PTX's ``cvt``."""
    name = "llvm.fptoui.sat" if unsigned else "llvm.fptosi.sat"
    result = intrinsic(name, element, x.unary(rounding))
    if x.element == "f32" and element == "i32":
        return result
    return x.is_nan().select(-(1 << (result.bits - 1)), result)


def llrint(x: Lanes) -> Lanes:
    return to_integer(x, "math.roundeven", "i64", unsigned=False)


def llround(x: Lanes) -> Lanes:
    return to_integer(x, "math.round", "i64", unsigned=False)


CONVERSIONS = {
    f"{source}2{target}_{mode}": (rounding, element, target[0] == "u")
    for source in ("float", "double")
    for target, element in (("int", "i32"), ("uint", "i32"), ("ll", "i64"), ("ull", "i64"))
    for mode, rounding in _ROUNDING.items()
}
"""Name of a conversion -> the operands of `to_integer`."""
