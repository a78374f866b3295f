"""How much faster several threads are than one, and beside what the machine's peak or memory gains by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .copies import COMPUTES_BAR
from .figures import Figure, ratio_of
from .measure import OURS
from .rows import EAGER

COMPUTES, MOVES = "arithmetic", "bandwidth"
PAIR_BAR, MOVES_BAR = 1.85, 0.9
"""The least gain of two threads, and of any number beside what memory gains.

`COMPUTES_BAR` holds beside what the peak gains, and beside copies (`copies.py`). The peak of as many threads as a
machine has CPUs is less than their number times that of one: two CPUs of a core share its units, and the clock is
slower.
"""

Times = dict[tuple[str, int], Figure]


def scaling(figures: Iterable[Figure]) -> list[Figure]:
    """The gains of all kernels with more than one thread, where one was measured as well; torch's of more than two.

    Without a roof, nothing is known of a kernel but its times, and it has no figures here.
    """
    figures = [figure for figure in figures if figure.group == "kernels"]
    ours, theirs = (
        {(f.name, f.threads): f for f in figures if f.column == column} for column in (OURS, EAGER)
    )
    roofs = {(f.name, f.threads): f for f in figures if f.column == "of the roof"}
    found = []
    for (name, threads), several in ours.items():
        one = ours.get((name, 1))
        if threads < 2 or one is None or (name, threads) not in roofs or (name, 1) not in roofs:
            continue
        limit = roofs[name, threads].note
        column = f"1 thread / {threads} threads"
        bar = PAIR_BAR if limit == COMPUTES and threads == 2 else None
        gain = ratio_of(one, several, "scaling", name, column, threads, bar)
        found.append(gain)
        if limit == MOVES:
            found.append(_beside_roof(gain, ours, roofs, "of what memory gains", MOVES_BAR))
        elif limit == COMPUTES and threads > 2:
            found.append(_beside_roof(gain, ours, roofs, "of what the peak gains", COMPUTES_BAR))
        if threads > 2 and (name, threads) in theirs and (name, 1) in theirs:
            peers = (theirs[name, 1], theirs[name, threads])
            found.append(ratio_of(*peers, "scaling", name, f"{EAGER}, {column}", threads, None))
    return found


def _beside_roof(gain: Figure, ours: Times, roofs: Times, column: str, bar: float) -> Figure:
    """The gain over that of the roof, or over the number of threads where that is less.

    In caches of their own, triads of as many bytes gain more than their number; kernels that compute as well cannot.
    """
    one, several = ((gain.name, 1), (gain.name, gain.threads))
    least = [roofs[key].value * ours[key].value for key in (one, several)]
    most = min(least[0] / least[1], gain.threads)
    return replace(
        gain,
        column=column,
        value=gain.value / most,
        low=gain.low / most,
        high=gain.high / most,
        bar=bar,
    )
