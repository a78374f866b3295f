"""The clock that events carry: compared with the host's, or of a simulated chip, with the work that it counts."""

from __future__ import annotations

import time
from collections.abc import Callable

from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.runtime.spinning import SLOW, turns_for
from triton_porting_kit.conformance.runtime.streams import ATTEMPTS

NANOSECONDS = (0.1, 1000.0)
"""What an iteration of `spinning.SPIN`, a multiplication and three operations that wait for it, takes on any chip."""


def check_clock(context: Context, measured: Callable[[int], float]) -> None:
    """Check the milliseconds that events measure around a kernel of so many turns.

    They are above zero, at most what the host measures, and, once the kernel is long, at least half of that. If the
    driver declares `TritonDriver.models_time`, the host's time says nothing, and the events have to be steady, and in a
    unit in which an iteration is neither faster nor slower than any chip can be.
    """
    milliseconds, found, host = SLOW, 0.0, 0.0
    if getattr(context.driver, "models_time", False):
        _check_steady(context, measured, turns_for(context, milliseconds))
        return
    for _ in range(ATTEMPTS):  # a busy machine may be late
        turns = turns_for(context, milliseconds)
        begin = time.perf_counter()
        found = measured(turns)
        host = (time.perf_counter() - begin) * 1000
        context.expect(
            0 < found <= host * 1.05 + 0.1, "it is not more than the host measured", f"{found} of {host} ms"
        )
        if found >= host / 2:
            break
        milliseconds *= 4
    context.expect(
        found >= host / 2, "it is half of what the host measured, or more", f"{found} of {host} ms"
    )


def _check_steady(context: Context, milliseconds: Callable[[int], float], turns: int) -> None:
    """A clock that counts work: the same takes as long again, and four times as much four times as long."""
    first, again, longer = (milliseconds(count) for count in (turns, turns, 4 * turns))
    context.expect(first > 0, "time passes while a kernel runs", f"{first} ms")
    context.expect(
        abs(first - again) <= first / 100, "the same kernel takes the same time", f"{first} and {again} ms"
    )
    context.expect(
        3.6 * first <= longer <= 4.4 * first,
        "four times the work takes four times as long",
        f"{first} and {longer} ms",
    )
    each = longer * 1e6 / (4 * turns)
    context.expect(
        NANOSECONDS[0] <= each <= NANOSECONDS[1],
        f"in milliseconds, an iteration takes {NANOSECONDS[0]:g} to {NANOSECONDS[1]:g} ns",
        f"{longer} for {4 * turns} iterations, which would be {each:.3g} ns for each",
    )
