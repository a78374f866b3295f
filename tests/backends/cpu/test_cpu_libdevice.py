"""Every inexact function of libdevice against mpmath, in units in the last place."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from libdevice_kernels import NUMPY, apply
from libdevice_oracle import EXACT, Array, distance, samples
from mpmath import mpf

from triton_porting_kit.compiler.libdevice import Function, Overload, functions

ROWS = functions()
INEXACT = [
    (row, overload)
    for row in ROWS.values()
    for overload in row.overloads
    if max(row.ulp) > 0 or row.name in EXACT
]
IDS = [f"{row.name}-{'-'.join(overload.operands)}" for row, overload in INEXACT]
SLOW = {"y0": 60, "y1": 40, "yn": 40, "jn": 60}
"""Functions of which mpmath takes long, and how many operands they get."""


def exact_name(name: str) -> str:
    """The function of which a fast one is the accurate form."""
    return name.removeprefix("fast_").removesuffix("f") if name.startswith("fast_") else name


def operands_of(name: str, overload: Overload, count: int) -> list[Array]:
    """Operands, the first of which lies where the function is interesting."""
    columns = []
    for index, kind in enumerate(overload.operands):
        if kind == "int32":
            columns.append(np.random.default_rng(index).integers(-30, 30, count, dtype=np.int32))
        else:
            columns.append(samples(name, count, kind, index))
    if name == "pow":
        # Exponents for which most results are finite.
        random = np.random.default_rng(5)
        with np.errstate(divide="ignore"):
            limit = (1000 if "fp64" in overload.operands else 140) / np.abs(
                np.log2(np.abs(columns[0]).astype(np.float64))
            )
        exponent = random.uniform(-1, 1, count) * np.minimum(limit, 1e6)
        integral = overload.operands[1] == "int32"
        columns[1] = (np.rint(exponent) if integral else exponent).astype(NUMPY[overload.operands[1]])
        if not integral:
            columns[0] = np.abs(columns[0])
    return columns


def allowed(row: Function, kind: str, exact: Any, operands: list[Any]) -> float:
    """Units in the last place, near a zero of a Bessel function what the table says there."""
    bound = row.ulp[kind == "fp64"] or 0.5
    if row.name[0] in "jy" and operands[-1]:
        least = mpf(2) ** -60 * mpmath.sqrt(2 / (mpmath.pi * abs(operands[-1])))
        bound = max(bound, float(least / mpf(2) ** (mpmath.floor(mpmath.log(abs(exact), 2)) - 52)))
    return bound


@pytest.mark.parametrize(("row", "overload"), INEXACT, ids=IDS)
def test_accuracy(device: Any, row: Function, overload: Overload) -> None:
    name = exact_name(row.name)
    columns = operands_of(name, overload, SLOW.get(name, 160))
    call = f"libdevice.{row.name}({', '.join('abcd'[: len(columns)])})"
    actual = apply(device, call, columns, overload.result)
    worst = (0.0, "")
    for result, *operands in zip(actual.tolist(), *(column.tolist() for column in columns), strict=True):
        numbers = [mpf(operand) for operand in operands]
        try:
            exact = EXACT[name](*numbers)
        except (ValueError, ZeroDivisionError):  # a pole: one of the special cases
            continue
        if not isinstance(exact, mpf) or not mpmath.isfinite(exact):
            continue
        error = distance(result, exact, overload.result) / allowed(row, overload.result, exact, numbers)
        if not error <= worst[0]:
            worst = (error, f"{operands}: {result!r}, not {mpmath.nstr(exact, 20)}")
    assert worst[0] <= 1.0, f"{worst[0]} of what is allowed at {worst[1]}"


INF, NAN = math.inf, math.nan
SPECIAL: list[tuple[str, tuple[float, ...], float]] = [
    ("exp", (INF,), INF), ("exp", (-INF,), 0.0), ("exp", (0.0,), 1.0), ("exp", (1e30,), INF), ("exp", (-1e30,), 0.0),
    ("exp2", (INF,), INF), ("exp2", (-INF,), 0.0), ("exp2", (-0.0,), 1.0), ("exp2", (10.0,), 1024.0),
    ("exp10", (INF,), INF), ("exp10", (-INF,), 0.0), ("exp10", (3.0,), 1000.0), ("exp10", (-1e30,), 0.0),
    ("expm1", (0.0,), 0.0), ("expm1", (-0.0,), -0.0), ("expm1", (-INF,), -1.0), ("expm1", (INF,), INF),
    ("log", (0.0,), -INF), ("log", (-0.0,), -INF), ("log", (1.0,), 0.0), ("log", (-1.0,), NAN), ("log", (INF,), INF),
    ("log", (-INF,), NAN), ("log2", (0.0,), -INF), ("log2", (1.0,), 0.0), ("log2", (-1e-45,), NAN), ("log2", (INF,), INF),
    ("log2", (8.0,), 3.0), ("log2", (0.125,), -3.0), ("log10", (0.0,), -INF), ("log10", (1.0,), 0.0),
    ("log10", (-2.0,), NAN), ("log10", (INF,), INF), ("log10", (1000.0,), 3.0), ("log1p", (-1.0,), -INF),
    ("log1p", (-0.0,), -0.0), ("log1p", (-2.0,), NAN), ("log1p", (INF,), INF),
    ("sin", (0.0,), 0.0), ("sin", (-0.0,), -0.0), ("sin", (INF,), NAN), ("cos", (-INF,), NAN), ("cos", (0.0,), 1.0),
    ("tan", (-0.0,), -0.0), ("tan", (INF,), NAN),
    ("sinpi", (0.0,), 0.0), ("sinpi", (-0.0,), -0.0), ("sinpi", (3.0,), 0.0), ("sinpi", (-2.0,), -0.0),
    ("sinpi", (0.5,), 1.0), ("sinpi", (1.5,), -1.0), ("sinpi", (INF,), NAN), ("sinpi", (1e30,), 0.0),
    ("cospi", (0.5,), 0.0), ("cospi", (1.5,), 0.0), ("cospi", (1.0,), -1.0), ("cospi", (-2.0,), 1.0), ("cospi", (INF,), NAN),
    ("asin", (-0.0,), -0.0), ("asin", (2.0,), NAN), ("acos", (1.0,), 0.0), ("acos", (-1.5,), NAN),
    ("atan", (-0.0,), -0.0), ("atan", (INF,), math.pi / 2), ("atan2", (0.0, -0.0), math.pi), ("atan2", (-0.0, 1.0), -0.0),
    ("atan2", (INF, INF), math.pi / 4), ("atan2", (-1.0, 0.0), -math.pi / 2), ("atan2", (-0.0, -1.0), -math.pi),
    ("sinh", (-0.0,), -0.0), ("sinh", (-INF,), -INF), ("cosh", (-INF,), INF), ("cosh", (0.0,), 1.0),
    ("tanh", (-0.0,), -0.0), ("tanh", (INF,), 1.0), ("tanh", (-INF,), -1.0),
    ("asinh", (-0.0,), -0.0), ("asinh", (-INF,), -INF), ("acosh", (1.0,), 0.0), ("acosh", (0.5,), NAN),
    ("acosh", (INF,), INF), ("atanh", (1.0,), INF), ("atanh", (-1.0,), -INF), ("atanh", (-0.0,), -0.0), ("atanh", (2.0,), NAN),
    ("cbrt", (-0.0,), -0.0), ("cbrt", (-INF,), -INF), ("cbrt", (-27.0,), -3.0), ("rcbrt", (-0.0,), -INF),
    ("rcbrt", (INF,), 0.0), ("rcbrt", (8.0,), 0.5), ("rsqrt", (0.0,), INF), ("rsqrt", (-0.0,), -INF),
    ("rsqrt", (INF,), 0.0), ("rsqrt", (-1.0,), NAN), ("sqrt", (-0.0,), -0.0), ("sqrt", (-1.0,), NAN), ("sqrt", (INF,), INF),
    ("pow", (0.0, -1.0), INF), ("pow", (-0.0, -1.0), -INF), ("pow", (-0.0, -2.0), INF), ("pow", (0.0, 0.0), 1.0),
    ("pow", (-0.0, 3.0), -0.0), ("pow", (-0.0, 2.0), 0.0), ("pow", (-0.0, 0.5), 0.0), ("pow", (-0.0, INF), 0.0),
    ("pow", (0.0, -INF), INF), ("pow", (-1.0, INF), 1.0), ("pow", (-1.0, -INF), 1.0), ("pow", (1.0, NAN), 1.0),
    ("pow", (NAN, 0.0), 1.0), ("pow", (NAN, 1.0), NAN), ("pow", (2.0, NAN), NAN), ("pow", (-1.0, NAN), NAN),
    ("pow", (-8.0, 1.0 / 3), NAN), ("pow", (-2.0, 3.0), -8.0), ("pow", (-2.0, -2.0), 0.25), ("pow", (0.5, INF), 0.0),
    ("pow", (0.5, -INF), INF), ("pow", (2.0, INF), INF), ("pow", (2.0, -INF), 0.0), ("pow", (INF, 0.5), INF),
    ("pow", (INF, -0.5), 0.0), ("pow", (-INF, 3.0), -INF), ("pow", (-INF, 2.0), INF), ("pow", (-INF, -3.0), -0.0),
    ("pow", (-INF, -2.5), 0.0), ("pow", (-INF, 2.5), INF), ("pow", (1e30, 300.0), INF), ("pow", (-1e30, 301.0), -INF),
    ("fmod", (5.5, 0.0), NAN), ("fmod", (-0.0, 3.0), -0.0), ("fmod", (INF, 2.0), NAN), ("fmod", (-7.5, INF), -7.5),
    ("fmod", (-7.5, 2.0), -1.5), ("remainder", (-7.5, 2.0), 0.5), ("remainder", (3.0, 2.0), -1.0), ("remainder", (1.0, 0.0), NAN),
    ("fdim", (3.0, 1.0), 2.0), ("fdim", (1.0, 3.0), 0.0), ("fdim", (NAN, 1.0), NAN), ("fdim", (INF, INF), 0.0),
    ("hypot", (INF, NAN), INF), ("hypot", (NAN, 1.0), NAN), ("hypot", (3.0, -4.0), 5.0), ("rhypot", (-INF, NAN), 0.0),
    ("rhypot", (0.0, -0.0), INF), ("norm3d", (NAN, 1.0, -INF), INF), ("norm3d", (2.0, 3.0, 6.0), 7.0),
    ("rnorm3d", (0.0, 0.0, 0.0), INF), ("norm4d", (1.0, 1.0, 1.0, -1.0), 2.0), ("rnorm4d", (NAN, 0.0, INF, 0.0), 0.0),
    ("erf", (-0.0,), -0.0), ("erf", (INF,), 1.0), ("erf", (-INF,), -1.0), ("erfc", (INF,), 0.0), ("erfc", (-INF,), 2.0),
    ("erfcx", (INF,), 0.0), ("erfcx", (-INF,), INF), ("erfcx", (0.0,), 1.0),
    ("erfinv", (1.0,), INF), ("erfinv", (-1.0,), -INF), ("erfinv", (-0.0,), -0.0), ("erfinv", (1.5,), NAN),
    ("erfcinv", (0.0,), INF), ("erfcinv", (2.0,), -INF), ("erfcinv", (1.0,), 0.0), ("erfcinv", (-0.5,), NAN),
    ("erfcinv", (2.5,), NAN), ("normcdf", (INF,), 1.0), ("normcdf", (-INF,), 0.0), ("normcdf", (0.0,), 0.5),
    ("normcdfinv", (0.0,), -INF), ("normcdfinv", (1.0,), INF), ("normcdfinv", (0.5,), 0.0), ("normcdfinv", (-1.0,), NAN),
    ("tgamma", (0.0,), INF), ("tgamma", (-0.0,), -INF), ("tgamma", (-3.0,), NAN), ("tgamma", (-INF,), NAN),
    ("tgamma", (INF,), INF), ("tgamma", (5.0,), 24.0), ("lgamma", (1.0,), 0.0), ("lgamma", (2.0,), 0.0),
    ("lgamma", (-4.0,), INF), ("lgamma", (-INF,), INF), ("lgamma", (0.0,), INF), ("lgamma", (INF,), INF),
    ("j0", (0.0,), 1.0), ("j0", (INF,), 0.0), ("j1", (0.0,), 0.0), ("y0", (0.0,), -INF), ("y0", (-1.0,), NAN),
    ("y1", (0.0,), -INF), ("y1", (INF,), 0.0), ("cyl_bessel_i0", (0.0,), 1.0), ("cyl_bessel_i0", (-INF,), INF),
    ("cyl_bessel_i1", (-0.0,), -0.0), ("cyl_bessel_i1", (-INF,), -INF), ("logb", (0.0,), -INF), ("logb", (-INF,), INF),
    ("logb", (-10.0,), 3.0), ("logb", (2.0**-149,), -149.0), ("nextafter", (0.0, 0.0), 0.0), ("nextafter", (0.0, -0.0), -0.0),
    ("nextafter", (NAN, 1.0), NAN), ("saturatef", (NAN,), 0.0), ("saturatef", (7.0,), 1.0), ("saturatef", (-3.0,), 0.0),
    ("saturatef", (0.25,), 0.25), ("round", (2.5,), 3.0), ("round", (-0.5,), -1.0), ("rint", (2.5,), 2.0), ("rint", (-0.5,), -0.0),
    ("nearbyint", (3.5,), 4.0), ("trunc", (-0.7,), -0.0), ("floor", (-0.7,), -1.0), ("ceil", (-0.7,), -0.0),
    ("copysign", (3.0, -0.0), -3.0),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["fp32", "fp64"])
def test_special_values(device: Any, kind: str) -> None:
    """Annex F of C, and what follows by analogy for functions that C has not; a NaN operand gives NaN else."""
    failures = []
    for name in dict.fromkeys(name for name, *_ in SPECIAL):
        cases = [(operands, expected) for other, operands, expected in SPECIAL if other == name]
        if not any(set(o.operands) == {kind} for o in ROWS[name].overloads):
            continue
        if not any(any(v != v for v in operands) for operands, _ in cases):
            cases.append(((NAN,) * len(cases[0][0]), NAN))
        columns = [np.array(column, NUMPY[kind]) for column in zip(*(o for o, _ in cases), strict=True)]
        call = f"libdevice.{name}({', '.join('abcd'[: len(columns)])})"
        actual = apply(device, call, columns, kind).tolist()
        for result, (operands, expected) in zip(actual, cases, strict=True):
            same = result == expected and math.copysign(1, result) == math.copysign(1, expected)
            near = math.isfinite(expected) and expected != 0 and abs(result / expected - 1) < 2.0**-22
            if not (same or near or (result != result and expected != expected)):
                failures.append(f"{name}{operands} is {result}, not {expected}")
    assert failures == []


@pytest.mark.parametrize(
    "name", ["erfinv", "tanh", "sin", "tgamma", "pow", "hypot", "isnan", "clz", "mulhi", "add_rd"]
)
def test_scalars_are_as_elements_of_tiles(device: Any, name: str) -> None:
    overload = ROWS[name].overloads[0]
    if overload.operands[0] == "int32":
        columns = [
            np.random.default_rng(i).integers(-(2**31), 2**31, 64).astype(NUMPY[k])
            for i, k in enumerate(overload.operands)
        ]
    else:
        columns = operands_of(name, overload, 64)
    call = f"libdevice.{name}({', '.join('abcd'[: len(columns)])})"
    tile = apply(device, call, columns, overload.result)
    np.testing.assert_array_equal(apply(device, call, columns, overload.result, scalar=True), tile)
