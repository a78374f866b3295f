"""How much faster several threads are than one: what computes beside their number, what moves beside memory's gain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .figures import Figure, ratio_of

COMPUTES, MOVES = "arithmetic", "bandwidth"
PAIR_BAR, COMPUTES_BAR, MOVES_BAR = 1.85, 0.85, 0.9
"""The least gain of two threads; of more, beside their number; and of any, beside what memory gains."""

Times = dict[tuple[str, int], Figure]


def scaling(figures: Iterable[Figure]) -> list[Figure]:
    """The gains of all kernels with more than one thread, where one was measured as well.

    Without a roof, nothing is known of a kernel but its times, and it has no figures here.
    """
    figures = [figure for figure in figures if figure.group == "kernels"]
    ours = {(f.name, f.threads): f for f in figures if f.column == "ours"}
    roofs = {(f.name, f.threads): f for f in figures if f.column == "of the roof"}
    found = []
    for (name, threads), several in ours.items():
        one = ours.get((name, 1))
        if threads < 2 or one is None or (name, threads) not in roofs or (name, 1) not in roofs:
            continue
        limit = roofs[name, threads].note
        column = f"1 thread / {threads} threads"
        bar = None if limit != COMPUTES else PAIR_BAR if threads == 2 else COMPUTES_BAR * threads
        gain = ratio_of(one, several, "scaling", name, column, threads, bar)
        found.append(gain)
        if limit == MOVES:
            found.append(_beside_memory(gain, ours, roofs))
    return found


def _beside_memory(gain: Figure, ours: Times, roofs: Times) -> Figure:
    """The gain over that of the triad of as many bytes, or over the number of threads where that is less.

    In caches of their own, triads gain more than their number; kernels that compute as well cannot.
    """
    one, several = ((gain.name, 1), (gain.name, gain.threads))
    least = [roofs[key].value * ours[key].value for key in (one, several)]
    memory = min(least[0] / least[1], gain.threads)
    return replace(
        gain,
        column="of what memory gains",
        value=gain.value / memory,
        low=gain.low / memory,
        high=gain.high / memory,
        bar=MOVES_BAR,
    )
