"""Launches with wrong arguments are refused before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel

CHECKS = Checks("runtime/refusals")

KERNEL = (
    "def takes(O, a, b: tl.int8, c: tl.float32, C: tl.constexpr):\n"
    "    tl.store(O, a)\n    tl.store(O + 1, b)\n    tl.store(O + 2, (c * 2).to(tl.int64))\n    tl.store(O + 3, C)\n"
)
Launch = Callable[[Any, GuardedArray], Any]
"""Launches a kernel with wrong arguments, given an output."""

ANY = (TypeError, ValueError, KeyError, OverflowError, RuntimeError)


def _refused(context: Context, launch: Launch, source: str = KERNEL) -> None:
    kernel = make_kernel(source)
    before = np.full(4, 5, np.int64)
    out = context.array(before, "i64")

    def call() -> None:
        launch(kernel, out)
        context.memory.synchronize()

    context.refuses("the launch", call, ANY)
    context.compare("the output", identical(context.read(out), before))
    kernel[(1,)](out, 3, 4, 2.5, C=9)
    context.compare(
        "a right launch afterwards", identical(context.read(out), np.array([3, 4, 5, 9], np.int64))
    )


_WRONG: dict[str, tuple[str, Launch]] = {
    "missing": ("one argument too few", lambda kernel, out: kernel[(1,)](out, 3, 4, C=9)),
    "missing-constexpr": ("no value for a constant", lambda kernel, out: kernel[(1,)](out, 3, 4, 2.5)),
    "nothing": ("no arguments at all", lambda kernel, out: kernel[(1,)]()),
    "too-many": ("one argument too many", lambda kernel, out: kernel[(1,)](out, 3, 4, 2.5, 9, 10)),
    "twice": ("one argument twice", lambda kernel, out: kernel[(1,)](out, 3, 4, 2.5, C=9, a=3)),
    "unknown-name": (
        "a name that it does not have",
        lambda kernel, out: kernel[(1,)](out, 3, 4, 2.5, C=9, nonsense=1),
    ),
    "string": ("a string for a number", lambda kernel, out: kernel[(1,)](out, "3", 4, 2.5, C=9)),
    "list": ("a list for a number", lambda kernel, out: kernel[(1,)](out, [3], 4, 2.5, C=9)),
    "object": (
        "an object of no known type for a number",
        lambda kernel, out: kernel[(1,)](out, object(), 4, 2.5, C=9),
    ),
    "complex": ("a complex number for a number", lambda kernel, out: kernel[(1,)](out, 3j, 4, 2.5, C=9)),
    "beyond-64-bits": (
        "an int that does not fit 64 bits",
        lambda kernel, out: kernel[(1,)](out, 1 << 64, 4, 2.5, C=9),
    ),
    "below-64-bits": (
        "an int below the range of 64 bits",
        lambda kernel, out: kernel[(1,)](out, -(1 << 63) - 1, 4, 2.5, C=9),
    ),
    "string-for-float": ("a string for a float", lambda kernel, out: kernel[(1,)](out, 3, 4, "2.5", C=9)),
    "float-for-int8": (
        "a float for an 8-bit integer",
        lambda kernel, out: kernel[(1,)](out, 3, 4.5, 2.5, C=9),
    ),
}

for _name, (_what, _launch) in _WRONG.items():
    CHECKS.add(
        f"{_name}",
        f"A launch that gives a kernel {_what} raises, runs nothing, and does not affect later launches.",
        partial(_refused, launch=_launch),
    )


def _narrow(kernel: Any, out: GuardedArray, value: int) -> None:
    kernel[(1,)](out, 3, value, 2.5, C=9)


for _name, _value in {"above": 128, "below": -129, "far-above": 1 << 20, "far-below": -(1 << 40)}.items():
    CHECKS.add(
        f"int8-{_name}",
        f"{_value}, which does not fit a parameter of 8 bits, is refused and not truncated: the kit's launchers "
        "guarantee it.",
        partial(
            _refused,
            launch=partial(_narrow, value=_value),
        ),
        kit_device=True,
    )


def _launch_on(kernel: Any, out: GuardedArray, grid: Any) -> Any:
    return kernel[grid](out, 3, 4, 2.5, C=9)


_FOUR_COUNTS: dict[str, Any] = {"tuple": (1, 1, 1, 1), "call": lambda _: (1, 1, 1, 2)}
for _name, _grid in _FOUR_COUNTS.items():
    CHECKS.add(
        f"four-counts-{_name}",
        "A grid of four counts is refused, and the fourth is not ignored: the kit's drivers guarantee it.",
        partial(_refused, launch=partial(_launch_on, grid=_grid)),
        kit_device=True,
    )


# --- compiled kernels, called directly -------------------------------------------------------------------

DIRECT = "def direct(O, a, b):\n    tl.store(O, a + b)\n"


def _direct(context: Context, arguments: Callable[[GuardedArray], tuple[Any, ...]]) -> None:
    before = np.zeros(1, np.int64)
    out = context.array(before, "i64")
    compiled = make_kernel(DIRECT).warmup(out, 3, 5, grid=(1,))

    def call() -> None:
        compiled[(1, 1, 1)](*arguments(out))
        context.memory.synchronize()

    context.refuses("the launch", call, ANY)
    context.compare("the output", identical(context.read(out), before))
    compiled[(1, 1, 1)](out, 7, 9)
    context.compare("a right launch afterwards", identical(context.read(out), np.array([16], np.int64)))


for _name, (_what, _arguments) in {
    "fewer": ("one argument too few", lambda out: (out, 3)),
    "more": ("one argument too many", lambda out: (out, 3, 5, 7)),
    "none": ("no arguments", lambda out: ()),
    "string": ("a string for an int", lambda out: (out, "3", 5)),
    "float": ("a float for an int", lambda out: (out, 3.5, 5)),
    "too-wide": ("an int that does not fit the compiled type", lambda out: (out, 1 << 40, 5)),
    "no-pointer": ("a string for a pointer", lambda out: ("out", 3, 5)),
}.items():
    CHECKS.add(
        f"compiled-{_name}",
        f"A compiled kernel that is called with {_what} raises, and runs nothing.",
        partial(_direct, arguments=_arguments),
    )
