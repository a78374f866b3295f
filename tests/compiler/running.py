"""Running small kernels on the CPU backend, and exact rounding for their oracles.

Element types go by Triton's names (``fp32``, ``u8``). On the host, values of a floating-point type are NumPy
arrays of that type; bfloat16, which NumPy lacks, is held in float32 arrays whose values are all bfloat16's.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kind:
    """An element type: Triton's name for it, the device array's, and NumPy's on the host."""

    name: str
    device: str
    host: np.dtype[Any]
    bits: int
    precision: int = 0
    """Bits of the significand, the hidden one included."""
    exponent: int = 0
    """Exponent of the largest power of two."""

    @property
    def is_float(self) -> bool:
        return self.precision > 0

    @property
    def is_signed(self) -> bool:
        return self.name[0] == "i" and self.bits > 1

    @property
    def is_integer(self) -> bool:
        return not self.is_float and self.bits > 1

    @property
    def language(self) -> str:
        """How a kernel's source names it."""
        return "tl." + self.device if self.bits > 1 else "tl.int1"

    @property
    def lowest(self) -> int:
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def highest(self) -> int:
        return (1 << (self.bits - self.is_signed)) - 1

    def __str__(self) -> str:
        return self.name


def _integer(name: str, device: str) -> Kind:
    kind = np.dtype(device)
    return Kind(name, device, kind, kind.itemsize * 8)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("i1", "bool", np.dtype(bool), 1),
        *(_integer(f"i{bits}", f"int{bits}") for bits in (8, 16, 32, 64)),
        *(_integer(f"u{bits}", f"uint{bits}") for bits in (8, 16, 32, 64)),
        Kind("fp16", "float16", np.dtype("float16"), 16, 11, 15),
        Kind("bf16", "bfloat16", np.dtype("float32"), 16, 8, 127),
        Kind("fp32", "float32", np.dtype("float32"), 32, 24, 127),
        Kind("fp64", "float64", np.dtype("float64"), 64, 53, 1023),
    )
}
INTEGERS = [kind for kind in KINDS.values() if kind.is_integer]
FLOATS = [kind for kind in KINDS.values() if kind.is_float]
NUMBERS = INTEGERS + FLOATS


# --- kernels -------------------------------------------------------------------------------------


@functools.cache
def make_kernel(source: str, **functions: Any) -> Any:
    """The `@triton.jit` function that `source` defines; a source is compiled once per process.

    `functions`: other `@triton.jit` functions, by the names by which it calls them.
    """
    name = source.partition("def ")[2].partition("(")[0]
    file = f"<kernel {name} {hash(source):x}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"tl": tl, "triton": triton, "__name__": "kernels_of_tests", **functions}
    exec(compile(source, file, "exec"), namespace)
    return triton.jit(namespace[name])


def device() -> Any:
    """The active driver's device."""
    from triton.runtime import driver

    return driver.active.device


def put(values: Array, kind: Kind | str) -> DeviceArray:
    """Host values on the device."""
    kind = KINDS[kind] if isinstance(kind, str) else kind
    values = np.ascontiguousarray(values)
    if kind.name == "bf16":
        return DeviceArray.from_numpy(bf16_bits(values), device(), "bfloat16")
    return DeviceArray.from_numpy(values.astype(kind.host, copy=False), device())


def get(array: DeviceArray) -> Array:
    """The values of a device array, on the host."""
    values = array.numpy()
    if str(array.dtype) == "bfloat16":
        return bf16_values(np.asarray(values).view(np.uint16))
    return values


def empty(shape: int | Sequence[int], kind: Kind | str, fill: int = 0xA5) -> DeviceArray:
    """An output, full of a byte that is unlikely to be right."""
    kind = KINDS[kind] if isinstance(kind, str) else kind
    array = DeviceArray.empty(shape, kind.device, device())
    device().memset(array.data_ptr(), fill if kind.bits > 1 else 1, array.nbytes, 0)
    return array


# --- rounding ------------------------------------------------------------------------------------


def bf16_bits(values: Array) -> Array:
    """Patterns of float32 values that bfloat16 can hold."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def bf16_values(bits: Array) -> Array:
    """bfloat16 patterns as float32 values."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def round_exact(value: int | float | Fraction, kind: Kind) -> float:
    """`value` rounded once, to nearest even, to a floating-point type."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf")) or value == 0):
        return value
    exact = Fraction(value)
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    power = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    power -= Fraction(2) ** power > magnitude
    unit = Fraction(2) ** (max(power, 1 - kind.exponent) - kind.precision + 1)
    quotient, rest = divmod(magnitude, unit)
    if rest * 2 > unit or (rest * 2 == unit and quotient % 2):
        quotient += 1
    rounded = quotient * unit
    if rounded >= Fraction(2) ** (kind.exponent + 1):
        rounded_float = float("inf")
    else:
        rounded_float = float(rounded)
    return -rounded_float if exact < 0 else rounded_float


def rounded(values: Iterable[Any], kind: Kind) -> Array:
    """Exact values (Python or NumPy numbers) rounded once to `kind`, in its host type."""
    numbers = [v.item() if isinstance(v, np.generic) else v for v in values]
    return np.array([round_exact(v, kind) for v in numbers], dtype=np.float64).astype(kind.host)


def from_float64(values: Array, kind: Kind) -> Array:
    """float64 results rounded to `kind` (exactly: one more rounding of the float64's own error at most)."""
    values = np.asarray(values, np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if kind.name == "bf16":
            return rounded(values.ravel(), kind).reshape(values.shape)
        return values.astype(kind.host)


def wrap(value: int, kind: Kind) -> int:
    """An integer modulo the size of an integer type."""
    value &= (1 << kind.bits) - 1
    return value - (1 << kind.bits) if kind.is_signed and value >> (kind.bits - 1) else value


# --- comparison ----------------------------------------------------------------------------------


def assert_same(actual: Array, expected: Array, message: str = "") -> None:
    """Equal bit for bit, signs of zero included; any NaN is as good as another."""
    expected = np.asarray(expected, actual.dtype)
    np.testing.assert_array_equal(actual, expected, message)
    if actual.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(actual)[known], np.signbit(expected)[known], f"{message}: sign of zero"
        )


def ulp_distance(actual: Array, exact: Array, kind: Kind) -> Array:
    """How far `actual` is from float64 `exact`, in units of the last place of `kind` at `exact`.

    Equal infinities and two NaNs are at distance 0, other meetings of them at infinity.
    """
    actual, exact = np.asarray(actual, np.float64), np.asarray(exact, np.float64)
    limit = (2.0 - 2.0 ** (1 - kind.precision)) * 2.0**kind.exponent
    with np.errstate(all="ignore"):
        overflowed = np.where(np.abs(exact) > limit, np.copysign(np.inf, exact), exact)
        _, power = np.frexp(exact)
        unit = np.ldexp(1.0, np.maximum(power - 1, 1 - kind.exponent) - kind.precision + 1)
        distance = np.abs(actual - exact) / unit
    same = (actual == overflowed) | (np.isnan(actual) & np.isnan(exact))
    return np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf))


# --- values worth trying -------------------------------------------------------------------------


def samples(kind: Kind, count: int = 16, seed: int = 0) -> Array:
    """Edge values of a type and random ones, `count` in all."""
    random = np.random.default_rng(seed)
    if kind.bits == 1:
        return random.integers(0, 2, count).astype(bool)
    if kind.is_integer:
        whole = [0, 1, 2, 7, kind.highest, kind.highest - 1, kind.lowest, kind.lowest + 1]
        whole += [-1, -2, -7] if kind.is_signed else [3, 100]
        rest = random.integers(kind.lowest, kind.highest, count, dtype=kind.host, endpoint=True)
        return np.concatenate([np.array(whole, kind.host), rest])[:count]
    tiny = 2.0 ** (2 - kind.exponent - kind.precision)
    largest = (2.0 - 2.0 ** (1 - kind.precision)) * 2.0**kind.exponent
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, tiny, -tiny, largest, -largest, 2.5, -7.0]
    rest = random.standard_normal(max(count, len(edges))) * 4.0
    return from_float64(np.concatenate([edges, rest])[:count], kind)


def pairs(values: Array) -> tuple[Array, Array]:
    """Every value against every other."""
    left, right = np.meshgrid(values, values, indexing="ij")
    return left.ravel(), right.ravel()
