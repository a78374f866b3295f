"""The levels of conformance, in the order in which a port reaches them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """A group of checks with one verdict."""

    name: str
    meaning: str
    """What a backend that passes can do, in one sentence."""
    compiled: str
    """The same where kernels were compiled and not run."""
    optional: bool = False
    """Whether it is tried only if it is asked for. Its mandatory checks are those that the run planned."""

    def promise(self, *, compile_only: bool) -> str:
        """What a pass of the level means."""
        return self.compiled if compile_only else self.meaning


LEVELS = {
    level.name: level
    for level in (
        Level(
            "registration",
            "Triton finds the backend, chooses it, and keeps its kernels apart from others'.",
            "Triton finds the backend, chooses it for the target, and keeps its kernels apart from others'.",
        ),
        Level(
            "runtime",
            "Memory, copies, streams, events, modules and launches do what their contracts say.",
            "The kernels that try memory, launches and arguments compile to sound binaries.",
        ),
        Level(
            "language",
            "Every operation of Triton's language gives the right result on every type.",
            "Every operation of Triton's language compiles on every type to a sound binary.",
        ),
        Level(
            "kernels",
            "Real kernels at real sizes give the right results.",
            "Real kernels at real sizes compile to sound binaries.",
        ),
        Level(
            "stress",
            "Random programs give the right results.",
            "Random programs compile to sound binaries.",
        ),
        Level(
            "torch",
            "PyTorch's operators and models give the right results on the backend's torch device.",
            "PyTorch's operators and models are not compiled without a device.",
            optional=True,
        ),
        Level(
            "public",
            "Triton kernels that others publish run unmodified and give the right results.",
            "Published kernels are not compiled without a device.",
            optional=True,
        ),
        Level(
            "distributed",
            "Ranks share symmetric memory, keep its order, and report a lost rank; collectives give the right results.",
            "Groups of ranks are not tried without a device.",
            optional=True,
        ),
    )
}
"""By name."""

DEFAULT_LEVELS = tuple(level.name for level in LEVELS.values() if not level.optional)
"""The levels of a run that asks for none."""


def selecting(name: str) -> list[str]:
    """The options of `tpk conform` that select the check `name`."""
    level = name.partition("/")[0]
    optional = level in LEVELS and LEVELS[level].optional
    return [*(["--level", level] if optional else []), "--select", name]
