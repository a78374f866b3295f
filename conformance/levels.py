"""The levels of conformance, in the order in which a port reaches them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """A group of checks with one verdict."""

    name: str
    meaning: str
    """What a backend that passes can do, in one sentence."""


LEVELS = {
    level.name: level
    for level in (
        Level(
            "registration", "Triton finds the backend, chooses it, and keeps its kernels apart from others'."
        ),
        Level(
            "runtime", "Memory, copies, streams, events, modules and launches do what their contracts say."
        ),
        Level("language", "Every operation of Triton's language gives the right result on every type."),
        Level("kernels", "Real kernels at real sizes give the right results."),
        Level("stress", "Random programs give the right results."),
    )
}
"""By name."""
