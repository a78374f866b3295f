"""Grids of one to three dimensions: every program runs once, with its own program ID."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel

CHECKS = Checks("runtime/grids")

IDS = """
def ids(I, C, N):
    x, y, z = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    place = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(I + place, x + (y << 24) + (z << 44))
    tl.store(C + place, tl.load(C + place) + 1)
    if place == 0:
        tl.store(N, tl.num_programs(0))
        tl.store(N + 1, tl.num_programs(1))
        tl.store(N + 2, tl.num_programs(2))
"""
TALLY = "def tally(C):\n    tl.atomic_add(C, 1)\n"


def _programs(context: Context, given: Any, counts: tuple[int, ...]) -> None:
    """Launch with a grid, and check in memory that each program of `counts` ran once."""
    x, y, z = (*counts, 1, 1)[:3]
    total = x * y * z
    identities, runs = context.empty((total,), "i64"), context.array(np.zeros(total, np.int32), "i32")
    numbers = context.empty((3,), "i32")
    make_kernel(IDS)[given](identities, runs, numbers)
    context.compare("how often each program ran", identical(context.read(runs), np.ones(total, np.int32)))
    place = np.arange(total, dtype=np.int64)
    expected = place % x + (place // x % y << 24) + (place // (x * y) << 44)
    context.compare("the place of each program", identical(context.read(identities), expected))
    context.compare(
        "the counts that programs see", identical(context.read(numbers), np.array([x, y, z], np.int32))
    )


for _grid in (
    *(
        (count,)
        for count in (1, 2, 3, 7, 31, 32, 33, 64, 1000, 1024, 65_535, 65_536, 65_537, 1 << 20, 1_000_003)
    ),
    *((1, 1), (3, 5), (5, 3), (1, 7), (16, 16), (257, 63), (1, 65_535), (2, 65_535), (65_537, 3)),
    *((1, 1, 1), (2, 3, 4), (4, 3, 2), (1, 1, 9), (1, 9, 1), (17, 1, 31), (63, 5, 7), (64, 64, 64)),
    *((1, 1, 65_535), (3, 1, 65_535), (1, 65_535, 2), (101, 103, 97)),
):
    CHECKS.add(
        "x".join(map(str, _grid)),
        f"A grid of {' by '.join(map(str, _grid))} runs each of its programs once, under its own number.",
        partial(_programs, given=_grid, counts=_grid),
        seconds=300 if math.prod(_grid) > 100_000 else 60,
    )


def _nothing_runs(context: Context, grid: tuple[int, ...]) -> None:
    identities, runs = (
        context.array(np.full(8, 3, np.int64), "i64"),
        context.array(np.zeros(8, np.int32), "i32"),
    )
    numbers = context.array(np.zeros(3, np.int32), "i32")
    make_kernel(IDS)[grid](identities, runs, numbers)
    context.compare("what programs would have counted", identical(context.read(runs), np.zeros(8, np.int32)))
    context.compare(
        "what they would have stored", identical(context.read(identities), np.full(8, 3, np.int64))
    )
    make_kernel(IDS)[(8,)](identities, runs, numbers)
    context.compare("a launch afterwards", identical(context.read(runs), np.ones(8, np.int32)))


for _grid in (
    (0,),
    (0, 1),
    (1, 0),
    (0, 0),
    (0, 1, 1),
    (1, 0, 1),
    (1, 1, 0),
    (3, 0, 2),
    (0, 65_535, 65_535),
    (0, 0, 0),
):
    CHECKS.add(
        f"nothing-{'x'.join(map(str, _grid))}",
        f"A grid of {' by '.join(map(str, _grid))} is not an error, and runs nothing.",
        partial(_nothing_runs, grid=_grid),
    )


_FORMS: dict[str, tuple[str, Any, tuple[int, ...]]] = {
    "list": ("a list", [3, 4], (3, 4)),
    "function": ("a function", lambda meta: (6, 2), (6, 2)),
    "numpy": ("NumPy's integers", (np.int64(5), np.int32(2)), (5, 2)),
    "truth": ("a boolean", (True, 3), (1, 3)),
}

for _name, (_what, _given, _counts) in _FORMS.items():
    CHECKS.add(
        f"from-{_name}", f"A grid may be given as {_what}.", partial(_programs, given=_given, counts=_counts)
    )


@CHECKS.check(
    "function-sees-arguments", "A function that computes the grid receives arguments and constants by name."
)
def _sees_arguments(context: Context) -> None:
    seen: list[dict[str, Any]] = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.append({name: meta[name] for name in ("n", "BLOCK")})
        return (-(-meta["n"] // meta["BLOCK"]),)

    source = "def blocks(C, n, BLOCK: tl.constexpr):\n    tl.store(C + tl.program_id(0), n * 100 + BLOCK)\n"
    out = context.array(np.zeros(8, np.int64), "i64")
    make_kernel(source)[grid](out, 50, BLOCK=8)
    context.expect(seen == [{"n": 50, "BLOCK": 8}], "it is called once, with their values", repr(seen))
    expected = np.array([5008] * 7 + [0], np.int64)
    context.compare("what seven programs stored", identical(context.read(out), expected))


def _tally(context: Context, grid: tuple[int, ...]) -> None:
    total = context.array(np.zeros(1, np.int64), "i64")
    make_kernel(TALLY)[grid](total)
    context.compare("the programs", identical(context.read(total), np.array([math.prod(grid)], np.int64)))


for _grid in ((1,), (1000,), (1 << 20,), (33, 65_535), (77, 79, 83)):
    CHECKS.add(
        f"tally-{'x'.join(map(str, _grid))}",
        f"All programs of a grid of {' by '.join(map(str, _grid))} count themselves with an atomic addition.",
        partial(_tally, grid=_grid),
        seconds=300 if math.prod(_grid) > 100_000 else 60,
        needs=("feature:atomics", "atomic:i64"),
    )


# --- invalid grids ---------------------------------------------------------------------------------

_BAD: dict[str, tuple[str, Any, bool]] = {
    "empty": ("without counts", (), False),
    "none": ("with None", (None,), False),
    "float": ("with a fraction", (1.5,), False),
    "string": ("with a string", ("3",), False),
    "negative": ("with a negative count", (-1,), True),
    "negative-y": ("with a negative second count", (2, -3), True),
    "2-to-31": ("with a count of 2**31", (1 << 31,), True),
    "2-to-32": ("with a count of 2**32, which is 0 in 32 bits,", (1 << 32,), True),
    "2-to-32-and-1": ("with a count of 2**32 + 1, which is 1 in 32 bits,", (1, (1 << 32) + 1), True),
}


def _refused(context: Context, grid: Any) -> None:
    runs = context.array(np.zeros(8, np.int32), "i32")
    identities, numbers = context.empty((8,), "i64"), context.empty((3,), "i32")

    def launch() -> None:
        make_kernel(IDS)[grid](identities, runs, numbers)

    context.refuses(
        f"the grid {grid}", launch, (TypeError, ValueError, IndexError, OverflowError, RuntimeError)
    )
    context.compare("what programs would have counted", identical(context.read(runs), np.zeros(8, np.int32)))


for _name, (_what, _given, _kit) in _BAD.items():
    CHECKS.add(
        f"{_name}-refused",
        f"A grid {_what} raises and runs nothing.",
        partial(_refused, grid=_given),
        kit_device=_kit,
    )
