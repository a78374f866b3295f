"""What transfers share, in a simulation of time: a port is busy, or it is not."""

from __future__ import annotations

import math
from bisect import bisect_right


class Port:
    """Moves one thing at a time, at a rate; what comes later fills gaps. Times are in cycles."""

    def __init__(self, bytes_per_cycle: float) -> None:
        self.bytes_per_cycle = bytes_per_cycle
        self.busy_cycles = 0.0
        self._starts: list[float] = []
        self._ends: list[float] = []
        """When it is busy: disjoint spans of time, in order."""

    def move(self, size: float, earliest: float) -> float:
        """Move `size` bytes from `earliest` on; returns when they have passed."""
        return self.work(size / self.bytes_per_cycle, earliest)

    def work(self, cycles: float, earliest: float) -> float:
        """Be busy for so many more cycles from `earliest` on; returns when they are over."""
        if not cycles:
            return earliest
        self.busy_cycles += cycles
        first = bisect_right(self._ends, earliest - 1e-9)
        begin, now, left, after = earliest, earliest, cycles, first
        if after < len(self._starts) and self._starts[after] <= now:
            begin, now, after = self._starts[after], self._ends[after], after + 1
        while True:
            following = self._starts[after] if after < len(self._starts) else math.inf
            if following - now >= left:
                end = now + left
                break
            left -= following - now
            now, after = self._ends[after], after + 1
        if end == following:
            end_of_span, after = self._ends[after], after + 1
        else:
            end_of_span = end
        self._starts[first:after] = [begin]
        self._ends[first:after] = [end_of_span]
        return end


class Window:
    """At most `most` things that are under way; whoever adds one more waits for the one that ends first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._ends: list[float] = []

    def room(self, now: float) -> float:
        """From when on there is room for another one."""
        self._ends = [end for end in self._ends if end > now]
        if len(self._ends) < self._most:
            return now
        return sorted(self._ends)[len(self._ends) - self._most]

    def add(self, end: float) -> None:
        self._ends.append(end)
