"""The functions of libdevice whose results are exact or rounded once, against Python's integers and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from libdevice_kernels import NUMPY, apply
from libdevice_oracle import EXACT, FORMATS

from triton_porting_kit.compiler.libdevice import Function, Overload, functions

Number = Any
ROWS = functions()
WIDTH = {"int32": 32, "uint32": 32, "int64": 64, "uint64": 64}
INF = math.inf


# --- oracles -------------------------------------------------------------------------------------


def rounded(value: Fraction, kind: str, mode: str) -> float:
    """An exact value rounded to a float type: to nearest even, toward zero, down, up."""
    precision, lowest, highest = FORMATS[kind]
    magnitude, sign = abs(value), -1 if value < 0 else 1
    if not magnitude:
        return 0.0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    unit = Fraction(2) ** max(exponent - precision + 1, lowest)
    whole, rest = divmod(magnitude, unit)
    away = {
        "rz": False,
        "rd": value < 0,
        "ru": value > 0,
        "rn": rest * 2 > unit or (rest * 2 == unit and whole % 2 == 1),
    }
    result = (whole + (away[mode] and rest > 0)) * unit
    if result >= Fraction(2) ** highest:
        largest = Fraction(2) ** highest - Fraction(2) ** (highest - precision)
        infinite = away[mode] or (mode == "rn")
        return sign * (INF if infinite else float(largest))
    return sign * float(result)


def root(value: Fraction, kind: str, mode: str) -> float:
    """The square root of an exact positive value, rounded: of so many bits that no rounding is in doubt."""
    shift = 2 * 1400
    scaled = value.numerator << shift
    whole = math.isqrt(scaled // value.denominator)
    exact = whole * whole * value.denominator == scaled
    # Beside the root where it is no whole number: it is not half way between two floats.
    return rounded(Fraction(2 * whole + (not exact), 2 << (shift // 2)), kind, mode)


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def bits_of(value: float, kind: str) -> int:
    single = kind == "fp32"
    return int(np.array(value, NUMPY[kind]).view(np.int32 if single else np.int64))


def float_of(bits: int, kind: str) -> float:
    single = kind == "fp32"
    return float(np.array(bits, np.int32 if single else np.int64).view(NUMPY[kind]))


def byte_perm(x: int, y: int, selectors: int) -> int:
    both = ((y & 0xFFFFFFFF) << 32 | x & 0xFFFFFFFF).to_bytes(8, "little")
    result = 0
    for place in range(4):
        result |= both[selectors >> (4 * place) & 7] << (8 * place)
    return signed(result, 32)


BITS: dict[str, Callable[..., int]] = {
    "clz": lambda x, *, width: width - (x & (1 << width) - 1).bit_length(),
    "popc": lambda x, *, width: (x & (1 << width) - 1).bit_count(),
    "ffs": lambda x, *, width: (x & -x).bit_length() if x else 0,
    "brev": lambda x, *, width: int(f"{x & (1 << width) - 1:0{width}b}"[::-1], 2),
    "byte_perm": lambda x, y, s, *, width: byte_perm(x, y, s),
    "mulhi": lambda a, b, *, width: a * b >> width,
    "sad": lambda a, b, c, *, width: abs(a - b) + c,
    "hadd": lambda a, b, *, width: (a + b) >> 1,
    "rhadd": lambda a, b, *, width: (a + b + 1) >> 1,
    "abs": lambda x, *, width: abs(x),
}


def integers(kind: str, count: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    width, host = WIDTH[kind], np.dtype(NUMPY[kind])
    info = np.iinfo(host)
    edges = [
        0,
        1,
        2,
        255,
        info.max,
        info.max - 1,
        info.min,
        info.min + 1,
        1 << (width - 2),
        0x7654 & info.max,
    ]
    rest = random.integers(info.min, info.max, count, dtype=host, endpoint=True)
    rest >>= random.integers(0, width - 1, count).astype(host)
    values = np.concatenate([np.array(edges, host), rest])[:count]
    random.shuffle(values)
    return values


def floats(kind: str, count: int, seed: int, *, finite: bool = True) -> Any:
    random = np.random.default_rng(seed)
    precision, lowest, highest = FORMATS[kind]
    tiny = 2.0**lowest
    largest = (2.0 - 2.0 ** (1 - precision)) * 2.0 ** (highest - 1)
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        -2.5,
        3.0,
        tiny,
        -tiny,
        largest,
        -largest,
        2.0**31,
        2.0**63,
        -(2.0**31),
        1e-3,
    ]
    edges += [] if finite else [INF, -INF, math.nan]
    wide = 2.0 ** random.uniform(lowest, highest - 1, count // 3) * random.choice([-1, 1], count // 3)
    rest = np.concatenate([wide, random.standard_normal(count // 3), random.uniform(-1e6, 1e6, count)])
    values = np.concatenate([edges, rest])[:count].astype(NUMPY[kind])
    random.shuffle(values)
    return values


def columns_of(row: Function, overload: Overload, count: int = 300) -> list[Any]:
    columns = []
    for index, kind in enumerate(overload.operands):
        make = integers if kind in WIDTH else floats
        columns.append(make(kind, count, index + len(row.name)))
    return columns


def check(device: Any, row: Function, overload: Overload, oracle: Callable[..., Number], **more: Any) -> None:
    columns = columns_of(row, overload)
    call = f"libdevice.{row.name}({', '.join('abcd'[: len(columns)])})"
    actual = apply(device, call, columns, overload.result)
    for result, *operands in zip(actual.tolist(), *(column.tolist() for column in columns), strict=True):
        expected = oracle(*operands, **more)
        if overload.result in WIDTH:
            width = WIDTH[overload.result]
            assert signed(result, width) == signed(int(expected), width), f"{row.name}{operands}"
        elif expected != expected:
            assert result != result, f"{row.name}{operands} is {result}"
        else:
            assert result == expected, f"{row.name}{operands}"
            assert math.copysign(1, result) == math.copysign(1, expected), (
                f"{row.name}{operands}: sign of zero"
            )


def overloads(*themes: str, names: tuple[str, ...] = ()) -> list[Any]:
    found = [row for row in ROWS.values() if row.theme in themes or row.name in names]
    return [
        pytest.param(row, overload, id=f"{row.name}-{'-'.join(overload.operands)}")
        for row in found
        for overload in row.overloads
    ]


# --- integers and bits ---------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "overload"), overloads("integers and bits"))
def test_integers(device: Any, row: Function, overload: Overload) -> None:
    if overload.operands[0] in FORMATS:
        check(device, row, overload, abs)
    elif row.name == "mul24":
        cut = (lambda x: signed(x, 24)) if overload.operands[0] == "int32" else (lambda x: x & 0xFFFFFF)
        check(device, row, overload, lambda a, b: cut(a) * cut(b))
    else:
        check(device, row, overload, BITS[row.name], width=WIDTH[overload.operands[0]])


# --- arithmetic with a rounding mode -------------------------------------------------------------


def arithmetic(name: str, kind: str, mode: str) -> Callable[..., float]:
    """The exact result of finite operands, rounded; what IEEE 754 says of zeros."""

    def oracle(*operands: float) -> float:
        a, b, c = (*map(Fraction, operands), Fraction(0), Fraction(0))[:3]
        first, second = (*operands, 0.0)[:2]
        if name == "sqrt":
            return math.nan if a < 0 else root(a, kind, mode) if a else first
        if name in ("div", "rcp"):
            a, b, first, second = (a, b, first, second) if name == "div" else (Fraction(1), a, 1.0, first)
            sign = math.copysign(1, first) * math.copysign(1, second)
            if not b:
                return sign * INF if a else math.nan
            return rounded(a / b, kind, mode) if a else sign * 0.0
        if name == "mul":
            if not a * b:
                return first * second
            return rounded(a * b, kind, mode)
        exact = {"add": a + b, "sub": a - b, "fma": a * b + c}[name]
        if exact:
            return rounded(exact, kind, mode)
        # An exact sum of 0: -0 where both terms are, or of opposite terms when rounding down.
        left, right = {"add": (first, second), "sub": (first, -second)}.get(name, (0.0, 0.0))
        if name == "fma":
            left = math.copysign(
                0.0 if not a * b else 1.0, math.copysign(1, first) * math.copysign(1, second)
            )
            right = operands[2]
        if math.copysign(1, left) == math.copysign(1, right):
            return math.copysign(0.0, left)
        return -0.0 if mode == "rd" else 0.0

    return oracle


DIRECTED = overloads(names=tuple(f"{op}_{mode}" for op in ("add", "sub", "mul", "div", "rcp", "sqrt", "fma") for mode in ("rn", "rz", "rd", "ru")))  # fmt: skip


@pytest.mark.parametrize(("row", "overload"), DIRECTED)
def test_directed_arithmetic(device: Any, row: Function, overload: Overload) -> None:
    name, _, mode = row.name.partition("_")
    check(device, row, overload, arithmetic(name, overload.result, mode))


def test_sums_rounded_to_nearest_are_not_fused(device: Any) -> None:
    a = np.full(4, 1 + 2.0**-12, np.float32)
    b = -(a * a)
    assert (apply(device, "libdevice.add_rn(libdevice.mul_rn(a, a), b)", [a, b], "fp32") == 0).all()


# --- conversions ---------------------------------------------------------------------------------


def whole(value: float, mode: str) -> int:
    down = math.floor(value)
    if mode == "rn":
        return round(value)
    return {"rz": math.trunc(value), "rd": down, "ru": math.ceil(value)}[mode]


def to_integer(source: str, target: str, mode: str) -> Callable[[float], int]:
    width = 64 if "ll" in target else 32
    low, high = (
        (0, (1 << width) - 1) if target.startswith("u") else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    )

    def oracle(value: float) -> int:
        if value != value:
            return 0 if source == "float" and width == 32 else 1 << (width - 1)
        if math.isinf(value):
            return high if value > 0 else low
        return min(max(whole(value, mode), low), high)

    return oracle


TO_INTEGER = [
    param
    for param in overloads("conversions")
    if param.values[0].name.startswith(("float2", "double2"))
    and param.values[0].name[-3] == "_"
    and "float" not in param.values[0].name[6:]
]
TO_FLOAT = [
    param
    for param in overloads("conversions")
    if "2float_" in param.values[0].name or "2double_" in param.values[0].name
]


@pytest.mark.parametrize(("row", "overload"), TO_INTEGER)
def test_floats_to_integers(device: Any, row: Function, overload: Overload) -> None:
    source, _, rest = row.name.partition("2")
    target, _, mode = rest.partition("_")
    columns = [floats(overload.operands[0], 300, 3, finite=False)]
    actual = apply(device, f"libdevice.{row.name}(a)", columns, overload.result)
    oracle, width = to_integer(source, target, mode), WIDTH[overload.result]
    expected = [signed(oracle(value), width) for value in columns[0].tolist()]
    assert actual.tolist() == expected


@pytest.mark.parametrize(("row", "overload"), TO_FLOAT)
def test_conversions_to_floats(device: Any, row: Function, overload: Overload) -> None:
    mode = row.name[-2:]

    def oracle(value: float) -> float:
        return rounded(Fraction(value), overload.result, mode) if value else value

    check(device, row, overload, oracle)


PATTERNS: dict[str, Callable[..., Number]] = {
    "int_as_float": lambda x: float_of(signed(x, 32), "fp32"),
    "uint_as_float": lambda x: float_of(signed(x, 32), "fp32"),
    "float_as_int": lambda x: bits_of(x, "fp32"),
    "float_as_uint": lambda x: bits_of(x, "fp32"),
    "longlong_as_double": lambda x: float_of(x, "fp64"),
    "double_as_longlong": lambda x: bits_of(x, "fp64"),
    "hiloint2double": lambda high, low: float_of(signed(high << 32 | low & 0xFFFFFFFF, 64), "fp64"),
    "double2loint": lambda x: bits_of(x, "fp64"),
    "double2hiint": lambda x: bits_of(x, "fp64") >> 32,
    "rcp64h": lambda x: float_of(bits_of(1 / x, "fp64") & -(1 << 32), "fp64") if x else math.copysign(INF, x),
}


@pytest.mark.parametrize(("row", "overload"), overloads(names=tuple(PATTERNS)))
def test_patterns(device: Any, row: Function, overload: Overload) -> None:
    with np.errstate(over="ignore"):
        check(device, row, overload, PATTERNS[row.name])


# --- parts of floats, classification -------------------------------------------------------------


def next_after(kind: str) -> Callable[[float, float], float]:
    return lambda a, b: float(np.nextafter(NUMPY[kind](a), NUMPY[kind](b)))


def away_from_zero(value: float) -> int:
    return math.floor(abs(value) + Fraction(1, 2)) * (1 if value > 0 else -1) if value else 0


def clamped(value: int) -> int:
    return min(max(value, -(1 << 63)), (1 << 63) - 1)


def scaled(kind: str) -> Callable[[float, int], float]:
    def oracle(value: float, exponent: int) -> float:
        if not value or exponent < -5000:
            return math.copysign(0.0, value)
        return rounded(Fraction(value) * Fraction(2) ** min(exponent, 5000), kind, "rn")

    return oracle


def exponent_of(value: float) -> int:
    return math.frexp(value)[1] - 1 if value else -(1 << 31)


PARTS: dict[str, Callable[[str], Callable[..., Number]]] = {
    "floor": lambda kind: lambda x: math.copysign(math.floor(x), x),
    "ceil": lambda kind: lambda x: math.copysign(math.ceil(x), x),
    "trunc": lambda kind: lambda x: math.copysign(math.trunc(x), x),
    "round": lambda kind: lambda x: math.copysign(away_from_zero(x), x),
    "rint": lambda kind: lambda x: math.copysign(round(x), x),
    "nearbyint": lambda kind: lambda x: math.copysign(round(x), x),
    "llrint": lambda kind: lambda x: clamped(round(x)),
    "llround": lambda kind: lambda x: clamped(away_from_zero(x)),
    "copysign": lambda kind: math.copysign,
    "nextafter": next_after,
    "ldexp": scaled,
    "scalbn": scaled,
    "ilogb": lambda kind: exponent_of,
    "logb": lambda kind: lambda x: float(exponent_of(x)) if x else -INF,
    "saturatef": lambda kind: lambda x: min(max(x, 0.0), 1.0) + 0.0,
    "fmod": lambda kind: lambda a, b: math.fmod(a, b) if b else math.nan,
    "remainder": lambda kind: lambda a, b: math.remainder(a, b) if b else math.nan,
    "fdim": lambda kind: lambda a, b: rounded(Fraction(a) - Fraction(b), kind, "rn") if a > b else 0.0,
    "fma": lambda kind: arithmetic("fma", kind, "rn"),
    "sqrt": lambda kind: arithmetic("sqrt", kind, "rn"),
    "signbit": lambda kind: lambda x: math.copysign(1, x) < 0,
    "fast_dividef": lambda kind: arithmetic("div", kind, "rn"),
}


@pytest.mark.parametrize(("row", "overload"), overloads(names=tuple(PARTS)))
def test_parts(device: Any, row: Function, overload: Overload) -> None:
    check(device, row, overload, PARTS[row.name](overload.operands[0]))


@pytest.mark.parametrize("kind", ["fp32", "fp64"])
def test_classification(device: Any, kind: str) -> None:
    x = floats(kind, 64, 1, finite=False)
    tests = {"isnan": np.isnan, "isinf": np.isinf, "finitef" if kind == "fp32" else "isfinited": np.isfinite}
    for name, oracle in tests.items():
        actual = apply(device, f"tl.where(libdevice.{name}(a), 1, 0)", [x], "int32")
        np.testing.assert_array_equal(actual, oracle(x))


def test_every_function_is_tested() -> None:
    covered = {param.values[0].name for param in (*DIRECTED, *TO_INTEGER, *TO_FLOAT)}
    covered |= set(BITS) | {"mul24"} | set(PATTERNS) | set(PARTS) | {"isnan", "isinf", "finitef", "isfinited"}
    covered |= {name for name, row in ROWS.items() if max(row.ulp) > 0} | set(EXACT)
    assert set(ROWS) - covered == set()
