"""Elementary functions of single precision, expanded into arithmetic for scalars and vectors.

Each reduces its argument and evaluates a polynomial. The coefficients are minimax fits (Lawson's algorithm) on the
reduced interval, rounded to single precision one after another. Errors were measured over all of single precision.
"""

from __future__ import annotations

import math

from triton_porting_kit.compiler.loops.arithmetic import functions
from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes, polynomial
from triton_porting_kit.compiler.loops.ir.values import Value

INFINITY, NAN = float("inf"), float("nan")
_NAN = "0x7FC00000"

# log(1 + f) = f - f^2/2 + f^3 p(f) on sqrt(1/2) - 1 <= f <= sqrt(2) - 1.
_LOG = (
    0.06916205585002899, -0.11790408939123154, 0.11872924119234085, -0.12384285032749176, 0.14218670129776,
    -0.16669252514839172, 0.20002225041389465, -0.24999986588954926, 0.3333331048488617,
)  # fmt: skip
# sin(r) = r + r^3 p(r^2) and cos(r) = 1 - r^2/2 + r^4 p(r^2) on |r| <= pi/4.
_SIN = (2.8320996534603182e-06, -0.0001985304697882384, 0.008333379402756691, -0.1666666716337204)
_COS = (2.4430661142105237e-05, -0.00138873013202101, 0.04166664555668831)
# tanh(x) = x + x^3 p(x^2) on |x| <= 0.63.
_TANH = (
    0.0021453246008604765, -0.00818298663944006, 0.02170453406870365, -0.05394785478711128, 0.13333219289779663,
    -0.3333333134651184,
)  # fmt: skip
# exp(x) = 1 + x + x^2 p(x) on |x| <= 0.36.
_EXPM1 = (
    0.00019942675135098398, 0.0013936178293079138, 0.008333209902048111, 0.041666459292173386, 0.1666666716337204, 0.5,
)  # fmt: skip
# log2(m) = s p(s^2), s = (m - 1)/(m + 1), and 2^x on |x| <= 1/2: in double precision, within 2^-45 and 2^-34.
_LOG2_ATANH = (
    0.28310105034461086, 0.31989243436153897, 0.4122095544082256, 0.5770779396096877, 0.9617966941219199,
    2.885390081777846,
)  # fmt: skip
_POWER_OF_TWO = (
    1.5303700711365693e-05, 0.00015469729214118296, 0.0013333478473685416, 0.009618025613318034,
    0.055504109063258665, 0.24022651213498092, 0.6931471805568324, 0.9999999999595618,
)  # fmt: skip


def _parts(value: float, bits: int) -> tuple[float, float]:
    """Split a number into one of `bits` bits and the remainder."""
    scale = 2.0 ** (bits - math.frexp(value)[1])
    high = round(value * scale) / scale
    return high, value - high


# --- logarithms ----------------------------------------------------------------------------------


def _logarithm(x: Lanes, per_unit: float, per_octave: float) -> Lanes:
    """log(x) * per_unit, where log(2) * per_unit is `per_octave`."""
    tiny = x < 2.0**-126
    normal = tiny.select(x * 2.0**23, x)
    # Choose the exponent such that the fraction lies between sqrt(1/2) and sqrt(2).
    bits = normal.pattern()
    exponent = (bits - 0x3F3504F3).shift_signed(23)
    f = (bits - (exponent << 23)).pattern() - 1.0
    e = exponent.cast("arith.sitofp", "f32")
    e = tiny.select(e - 23.0, e)
    square = f * f
    # The rounding error of the square. Without it, log2 is slightly more than one ulp off.
    square_rest = f.fma(f, -square)
    rest = square_rest.fma(-0.5, f * square * polynomial(f, _LOG))
    rest = square.fma(-0.5, rest)
    octave, octave_rest = _parts(per_octave, 16)
    unit, unit_rest = _parts(per_unit, 24)
    low = rest if per_unit == 1 else rest * per_unit
    if octave_rest:
        low = e.fma(octave_rest, low)
    if unit_rest:
        low = f.fma(unit_rest, low)
    result = e.fma(octave, f.fma(unit, low))
    result = x.equals(0.0).select(-INFINITY, result)
    result = (x < 0.0).select(x.constant(_NAN), result)
    return (x < INFINITY).select(result, (x < 0.0).select(x.constant(_NAN), x))


def log(x: Lanes) -> Lanes:
    return _logarithm(x, 1.0, math.log(2))


def log2(x: Lanes) -> Lanes:
    return _logarithm(x, 1 / math.log(2), 1.0)


def log10(x: Lanes) -> Lanes:
    return _logarithm(x, 1 / math.log(10), math.log10(2))


# --- sine and cosine -----------------------------------------------------------------------------

CIRCULAR_LIMIT = 2.0**30
"""The bound on |x| below which sine and cosine are accurate."""

_HALF_PI = math.pi / 2
_HALF_PI_REST = 6.123233995736766e-17


def _circular(x: Lanes, quarters: int) -> Lanes:
    """sin(x + quarters * pi/2).

    The argument is reduced in double precision. The first product is subtracted exactly (Cody and Waite, with a fused
    multiply-add), so the remainder has a relative error of about 2^-50, however near to a zero.
    """
    inside = x.absolute() < CIRCULAR_LIMIT
    wide = inside.select(x, 0.0).cast("arith.extf", "f64")
    count = (wide * (2 / math.pi)).unary("math.roundeven")
    rest = (-count).fma(_HALF_PI_REST, (-count).fma(_HALF_PI, wide))
    r = rest.cast("arith.truncf", "f32")
    r_rest = (rest - r.cast("arith.extf", "f64")).cast("arith.truncf", "f32")
    quadrant = count.cast("arith.fptosi", "i32")
    if quarters:
        quadrant = quadrant + quarters
    square = r * r
    sine = (r * square).fma(polynomial(square, _SIN), square.fma(-0.5, 1.0) * r_rest) + r
    # 1 - r^2/2 in two parts. The rounding errors of the difference and of the square are added to the small terms.
    half = square * 0.5
    upper = 1.0 - half
    lower = (1.0 - upper) - half
    lower = r.fma(r, -square).fma(-0.5, r.fma(-r_rest, lower))
    cosine = (square * square).fma(polynomial(square, _COS), lower) + upper
    value = (quadrant & 1).equals(0).select(sine, cosine)
    return (value.pattern() ^ ((quadrant & 2) << 30)).pattern()


def sin(x: Lanes) -> Lanes:
    """For |x| < `CIRCULAR_LIMIT`, and NaN."""
    # Return small x itself: it is accurate, and 0 keeps its sign.
    result = (x.absolute() < 2.0**-12).select(x, _circular(x, 0))
    return x.is_nan().select(x, result)


def cos(x: Lanes) -> Lanes:
    """For |x| < `CIRCULAR_LIMIT`, and NaN."""
    return x.is_nan().select(x, _circular(x, 1))


# --- exponentials, and functions based on them ---------------------------------------------------


def exp(x: Lanes, has_scalef: bool, *, moderate: bool = False, no_positive: bool = False) -> Lanes:
    value = functions.exp(x.builder, x.value, has_scalef, moderate=moderate, no_positive=no_positive)
    return Lanes(x.builder, value)


def exp2(x: Lanes, has_scalef: bool, *, no_positive: bool = False) -> Lanes:
    return Lanes(x.builder, functions.exp2(x.builder, x.value, has_scalef, no_positive=no_positive))


def exp10(x: Lanes, has_scalef: bool) -> Lanes:
    high, low = _parts(math.log10(2), 16)
    builder = x.builder

    def small(value: Value, whole: Value, unit: float) -> Value:
        power, exponent = Lanes(builder, value), Lanes(builder, whole)
        rest = exponent.fma(-low, exponent.fma(-high, power))
        return functions.exp_of_small(builder, (rest * math.log(10)).value, unit)

    octaves = 1 / math.log10(2)
    return Lanes(builder, functions.exponential(builder, x.value, small, octaves, -45.2, 38.7, has_scalef))


def tanh(x: Lanes, has_scalef: bool) -> Lanes:
    """1 - 2/(exp(2|x|) + 1), and a polynomial where that would suffer cancellation."""
    size = x.absolute()
    # Above 9.02 the result is 1. A NaN stays NaN.
    large = 1.0 - 2.0 / (exp((size > 10.0).select(20.0, size * 2.0), has_scalef, moderate=True) + 1.0)
    square = x * x
    small = (x * square).fma(polynomial(square, _TANH), x)
    result = (size < 0.625).select(small, large.with_sign_of(x))
    return (size < 2.0**-12).select(x, result)


# --- powers --------------------------------------------------------------------------------------

_ONE = 1023 << 52
_ROOT_OF_HALF = 0x3FE6A09E667F3BCD
_TO_INTEGER = 1.5 * 2.0**52  # added to a number below 2^51, it leaves the integer in the lowest bits


def _log2_of_double(x: Lanes) -> Lanes:
    """log2 of a positive normal double, with a relative error below 2^-44."""
    bits = x.pattern()
    biased = (bits + (_ONE - _ROOT_OF_HALF)) >> 52
    m = (bits - ((biased << 52) - _ONE)).pattern()
    exponent = (biased | 0x4330000000000000).pattern() - (2.0**52 + 1023)
    s = (m - 1.0) / (m + 1.0)
    return s.fma(polynomial(s * s, _LOG2_ATANH), exponent)


def _power_of_two(x: Lanes) -> Lanes:
    """2**x of doubles, with a relative error below 2^-34, for -1000 <= x <= 1000."""
    shifted = x + _TO_INTEGER
    power = ((shifted.pattern() << 52) + _ONE).pattern()
    return polynomial(x - (shifted - _TO_INTEGER), _POWER_OF_TWO) * power


def pow(x: Lanes, y: Lanes) -> Lanes:
    """x**y as 2**(y log2|x|), computed in double precision; special cases as in Annex F of C.

    `y` may also be int32.
    """
    size = x.absolute()
    wide = size.cast("arith.extf", "f64")
    exponent = y.cast("arith.extf" if y.is_float else "arith.sitofp", "f64")
    logarithm = _log2_of_double(wide)
    logarithm = wide.equals(0.0).select(-INFINITY, logarithm)
    logarithm = (wide < INFINITY).select(logarithm, wide)
    product = exponent * logarithm
    product = wide.equals(1.0).select(0.0, product)
    product = (product > 300.0).select(300.0, product)
    product = (product < -300.0).select(-300.0, product)
    result = _power_of_two(product).cast("arith.truncf", "f32")
    half = exponent * 0.5
    whole = exponent.unary("math.trunc").equals(exponent)
    odd = whole & half.unary("math.trunc").differs(half)
    result = odd.select(result.with_sign_of(x), result)
    invalid = (x < 0.0) & (size < INFINITY) & ~whole
    result = invalid.select(x.constant(_NAN), result)
    return (x.equals(1.0) | exponent.equals(0.0)).select(1.0, result)


def log1p(x: Lanes) -> Lanes:
    """log(1 + x). The sum is computed in double precision, which is accurate enough except for the smallest x."""
    one_more = x.cast("arith.extf", "f64") + 1.0
    logarithm = (_log2_of_double(one_more) * math.log(2)).cast("arith.truncf", "f32")
    result = (x.absolute() < 2.0**-12).select((x * x).fma(x.fma(1 / 3, -0.5), x), logarithm)
    result = x.equals(-1.0).select(-INFINITY, result)
    result = (x < -1.0).select(x.constant(_NAN), result)
    # Zeros, infinity and NaN.
    return (x.equals(0.0) | ~(x < INFINITY)).select(x, result)


def expm1(x: Lanes) -> Lanes:
    """exp(x) - 1, computed in double precision except for small x."""
    # A NaN passes both selects.
    bounded = (x > 100.0).select(100.0, x)
    bounded = (bounded < -50.0).select(-50.0, bounded)
    power = _power_of_two(bounded.cast("arith.extf", "f64") * math.log2(math.e))
    small = (x * x).fma(polynomial(x, _EXPM1), x)
    result = (x.absolute() < 0.35).select(small, (power - 1.0).cast("arith.truncf", "f32"))
    return (x.absolute() < 2.0**-30).select(x, result)
