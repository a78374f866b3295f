"""How a kernel uses the units: the first choice whose buffers fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import ChipDescription

from .editing import bytes_of, functions, nested, shape_of
from .memories import SCRATCH_ALIGNMENT, vector_memory
from .passes import TILE_PASSES, TilePass
from .place import plan


@dataclass(frozen=True)
class Choice:
    """`raises`: products go to the matrix unit. `overlaps`: loops move the next tile while they compute. `parts`: a
    piece of a tile is at most the vector memory divided by this; 1: tiles are not split.
    """

    raises: bool
    overlaps: bool
    parts: int = 1

    @property
    def leaves_out(self) -> set[str]:
        """Names of passes that do not run."""
        products = set() if self.raises else {"products"}
        overlap = set() if self.overlaps else {"sending", "overlap"}
        return products | overlap | (set() if self.parts > 1 else {"split"})


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
    read: Callable[[], Any],
    chip: ChipDescription,
    num_stages: int,
    scratch: Callable[[Any], int],
    passes: Mapping[str, TilePass] = TILE_PASSES,
) -> Any:
    """The stage ``tiles`` of a structured module, which `read` gives anew for each choice, in MLIR's bindings.

    `scratch` gives the bytes that vector code of a module of this stage keeps. If no choice fits, the result is that of
    the last one which does not split tiles, and placing its buffers or writing its loops says what is missing.
    """
    module = None
    for choice in choices(num_stages):
        module = read()
        _compile(module, chip, choice, passes)
        if _fits(module, chip, scratch):
            return module
    size = chip.local_bytes(vector_memory(chip))
    if "split" not in passes or not passes["split"](read(), chip, size // MOST_PARTS):
        return module
    for choice in splitting(num_stages):
        pieces = read()
        if _compile(pieces, chip, choice, passes) and _fits(pieces, chip, scratch):
            return pieces
    return module


def _compile(module: Any, chip: ChipDescription, choice: Choice, passes: Mapping[str, TilePass]) -> bool:
    """Run the passes of a choice, and return whether tiles were split. The rest does not run if they should be."""
    was_split = False
    for name, run in passes.items():
        if name in choice.leaves_out:
            continue
        if name == "split":
            was_split = run(module, chip, chip.local_bytes(vector_memory(chip)) // choice.parts)
            if not was_split:
                return False
        else:
            run(module, chip)
    return was_split


def _fits(module: Any, chip: ChipDescription, scratch: Callable[[Any], int]) -> bool:
    """Whether buffers fit their memories, and what vector code keeps behind them.

    Lowering a module tells what that is. Where all tensors would fit, that is not needed.
    """
    found = plan(module, chip)
    if any(found.used(memory.name) > chip.local_bytes(memory) for memory in chip.local_memories):
        return False
    vector = vector_memory(chip)
    free = chip.local_bytes(vector) - found.used(vector.name, aligned=SCRATCH_ALIGNMENT)
    return _all_tensors(module) <= free or scratch(module) <= free


def _all_tensors(module: Any) -> int:
    """Bytes of all tensors of a module."""
    return sum(
        bytes_of(result)
        for function in functions(module)
        for operation in nested(function.regions[0].blocks[0])
        for result in operation.results
        if shape_of(result) is not None and operation.name != "tensor.empty"
    )
