"""How a kernel uses the units: the first choice whose buffers fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import ChipDescription

from .memories import vector_memory
from .overlap import overlap
from .place import plan
from .products import raise_products
from .programs import loop_over_programs
from .room import room, surely_fits
from .sending import send_ahead
from .split import split
from .transfer import transfer
from .waits import remove_redundant


@dataclass(frozen=True)
class Choice:
    """`raises`: products go to the matrix unit. `overlaps`: loops move the next tile while they compute. `parts`: a
    piece of a tile is at most the vector memory divided by this; 1: tiles are not split.
    """

    raises: bool
    overlaps: bool
    parts: int = 1


MOST_PARTS = 1 << 10
"""A piece is at least this part of the vector memory."""


def choices(num_stages: int) -> Iterator[Choice]:
    """What to try, the fastest first and what takes the least memory last."""
    overlapping = (True, False) if num_stages > 1 else (False,)
    for raises in (True, False):
        for overlaps in overlapping:
            yield Choice(raises, overlaps)


def splitting(num_stages: int) -> Iterator[Choice]:
    """What to try if that does not fit, the largest pieces first."""
    parts = 2
    while parts <= MOST_PARTS:
        yield Choice(True, num_stages > 1, parts)
        parts *= 2


def tiled(
    read: Callable[[], Any], chip: ChipDescription, num_stages: int, scratch: Callable[[Any], int]
) -> Any:
    """The stage ``tiles`` of a structured module, which `read` gives anew for each choice, in MLIR's bindings.

    `scratch` gives the bytes that vector code of a module of this stage keeps. If no choice fits, the result is that of
    the last one which does not split tiles, and placing its buffers or writing its loops says what is missing.
    """
    module = None
    for choice in choices(num_stages):
        module = read()
        loop_over_programs(module, chip)
        _compile(module, chip, choice)
        if _fits(module, chip, scratch):
            return module
    size = chip.local_bytes(vector_memory(chip))
    if not split(read(), chip, size // MOST_PARTS):
        return module
    for choice in splitting(num_stages):
        pieces = read()
        loop_over_programs(pieces, chip)
        if split(pieces, chip, size // choice.parts):
            _compile(pieces, chip, choice)
            if _fits(pieces, chip, scratch):
                return pieces
    return module


def _compile(module: Any, chip: ChipDescription, choice: Choice) -> None:
    if choice.raises:
        raise_products(module, chip)
    transfer(module, chip)
    if choice.overlaps:
        send_ahead(module, chip)
        overlap(module, chip)
    remove_redundant(module)


def _fits(module: Any, chip: ChipDescription, scratch: Callable[[Any], int]) -> bool:
    """Whether buffers fit their memories, and what vector code keeps behind them.

    Lowering a module tells what that is. Where all tensors would fit, that is not needed.
    """
    found = plan(module, chip)
    if any(found.used(memory.name) > chip.local_bytes(memory) for memory in chip.local_memories):
        return False
    return surely_fits(module, found, chip) or scratch(module) <= room(found, chip)
