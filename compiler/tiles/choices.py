"""How a kernel uses the units: the first choice whose buffers fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import ChipDescription

from .overlap import overlap
from .place import plan
from .products import raise_products
from .programs import loop_over_programs
from .sending import send_ahead
from .transfer import transfer
from .waits import remove_redundant


@dataclass(frozen=True)
class Choice:
    """`raises`: products go to the matrix unit. `overlaps`: loops move the next tile while they compute."""

    raises: bool
    overlaps: bool


def choices(num_stages: int) -> Iterator[Choice]:
    """What to try, the fastest first and what takes the least memory last."""
    overlapping = (True, False) if num_stages > 1 else (False,)
    for raises in (True, False):
        for overlaps in overlapping:
            yield Choice(raises, overlaps)


def tiled(read: Callable[[], Any], chip: ChipDescription, num_stages: int) -> Any:
    """The stage ``tiles`` of a structured module, which `read` gives anew for each choice, in MLIR's bindings.

    If no choice fits, the result is that of the last one, and placing its buffers says what is missing.
    """
    for choice in choices(num_stages):
        module = read()
        loop_over_programs(module, chip)
        if choice.raises:
            raise_products(module, chip)
        transfer(module, chip)
        if choice.overlaps:
            send_ahead(module, chip)
            overlap(module, chip)
        remove_redundant(module)
        found = plan(module, chip)
        if all(found.used(memory.name) <= chip.local_bytes(memory) for memory in chip.local_memories):
            break
    return module
