"""The error for a kernel whose tiles do not fit a chip's memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triton.runtime.errors import OutOfResources

from .plan import Plan


@dataclass(frozen=True)
class Missing:
    """A memory that is too small: the bytes that the plan needs, and those that there are."""

    memory: str
    needed: int
    there: int


class OutOfOnChipMemory(OutOfResources):  # type: ignore[misc]
    """Triton's `OutOfResources`, after which an autotuner goes on. Its text has the table of the buffers."""

    def __init__(self, required: int, limit: int, name: str, text: str) -> None:
        super().__init__(required, limit, name)
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[OutOfOnChipMemory], tuple[int, int, str, str]]:
        return type(self), (self.required, self.limit, self.name, self.text)


def out_of_memory(plan: Plan, missing: Sequence[Missing], scratch: int = 0) -> OutOfOnChipMemory:
    """The error for a plan that needs more than there is. `scratch`: bytes that vector code needs besides buffers."""
    worst = max(missing, key=lambda memory: memory.needed - memory.there)
    text = "\n".join(
        [
            f"{plan.kernel} needs "
            + ", ".join(f"{m.needed:,} bytes of {m.memory}, which has {m.there:,}" for m in missing),
            *table(plan),
            *([f"  and {scratch:,} bytes for what vector code keeps"] if scratch else []),
            "make the tiles smaller, or use fewer stages",
        ]
    )
    return OutOfOnChipMemory(worst.needed, worst.there, f"on-chip memory {worst.memory}", text)


def table(plan: Plan) -> list[str]:
    """The buffers of a plan, the largest first: what each holds, its line, its memory, and when it is in use."""
    lines = [f"  {'tensor':<12} {'line':>5} {'bytes':>10} {'memory':<8} {'address':>8} {'live':>12}"]
    for placed in sorted(plan.buffers, key=lambda placed: -placed.lifetime.bytes):
        life = placed.lifetime
        lines.append(
            f"  {life.holds:<12} {life.line or '':>5} {life.bytes:>10,} {life.memory:<8} {placed.address:>8} "
            f"{f'{life.first}-{life.last}':>12}"
        )
    return lines
