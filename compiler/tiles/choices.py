"""How a kernel uses the units: the first choice whose buffers fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import ChipDescription

from .memories import vector_memory
from .overlap import Level
from .passes import TILE_PASSES, TilePass
from .place import plan
from .plan import Plan
from .room import room, surely_fits


@dataclass(frozen=True)
class Choice:
    """`raises`: products go to the matrix unit. `overlaps`: how much loops start early; None: nothing. `parts`: a piece
    of a tile is at most the vector memory divided by this; 1: tiles are not split.
    """

    raises: bool
    overlaps: Level | None
    parts: int = 1

    @property
    def leaves_out(self) -> set[str]:
        """Names of passes that do not run."""
        products = set() if self.raises else {"turning", "products"}
        overlap = set() if self.overlaps is not None else {"sending", "overlap"}
        return products | overlap | (set() if self.parts > 1 else {"split"})


MOST_PARTS = 1 << 10
"""A piece is at least this part of the vector memory."""


def choices(num_stages: int) -> Iterator[Choice]:
    """What to try, the fastest first and what takes the least memory last."""
    levels = (*sorted(Level, reverse=True), None) if num_stages > 1 else (None,)
    for raises in (True, False):
        for level in levels:
            yield Choice(raises, level)


def splitting(num_stages: int) -> Iterator[Choice]:
    """What to try if that does not fit, the largest pieces first."""
    parts = 2
    while parts <= MOST_PARTS:
        yield Choice(True, Level.BOTH if num_stages > 1 else None, parts)
        parts *= 2


def tiled(
    read: Callable[[], Any],
    chip: ChipDescription,
    num_stages: int,
    scratch: Callable[[Any, Plan], int],
    passes: Mapping[str, TilePass] = TILE_PASSES,
) -> tuple[Any, Plan]:
    """The stage ``tiles`` of a structured module, which `read` gives anew for each choice, in MLIR's bindings; and the
    plan of its buffers.

    `scratch` gives the bytes that vector code of a module of this stage keeps. If no choice fits, the result is that of
    the last one which does not split tiles, and placing its buffers or writing its loops says what is missing.
    """
    found: tuple[Any, Plan] | None = None
    alike: set[Choice] = set()
    for choice in choices(num_stages):
        if choice in alike:
            continue
        module = read()
        compiled = _compile(module, chip, choice, num_stages, passes)
        alike |= compiled.alike
        found = module, plan(module, chip)
        if _fits(*found, chip, scratch):
            return found
    assert found is not None
    size = chip.local_bytes(vector_memory(chip))
    if "split" not in passes or not passes["split"](read(), chip, size // MOST_PARTS):
        return found
    for choice in splitting(num_stages):
        module = read()
        if not _compile(module, chip, choice, num_stages, passes).split:
            continue
        pieces = module, plan(module, chip)
        if _fits(*pieces, chip, scratch):
            return pieces
    return found


@dataclass(frozen=True)
class _Compiled:
    """`split`: whether tiles were split. `alike`: the choices that would have given the same module."""

    split: bool
    alike: frozenset[Choice]


def _compile(
    module: Any, chip: ChipDescription, choice: Choice, num_stages: int, passes: Mapping[str, TilePass]
) -> _Compiled:
    """Run the passes of a choice. The rest does not run if tiles should be split and are not."""
    was_split = raised = less = False
    for name, run in passes.items():
        if name in choice.leaves_out:
            continue
        if name == "split":
            was_split = run(module, chip, chip.local_bytes(vector_memory(chip)) // choice.parts)
            if not was_split:
                break
        elif name == "products":
            raised = run(module, chip) != 0
        elif name == "overlap":
            less = run(module, chip, choice.overlaps, num_stages) is not False
        else:
            run(module, chip)
    levels = [choice.overlaps] if choice.overlaps is None or less else list(Level)
    alike = (Choice(raises, level) for raises in ((True,) if raised else (True, False)) for level in levels)
    return _Compiled(was_split, frozenset(alike))


def _fits(module: Any, found: Plan, chip: ChipDescription, scratch: Callable[[Any, Plan], int]) -> bool:
    """Whether buffers fit their memories, and what vector code keeps behind them.

    Lowering a module tells what that is. Where all tensors would fit, that is not needed.
    """
    if any(found.used(memory.name) > chip.local_bytes(memory) for memory in chip.local_memories):
        return False
    return surely_fits(found, chip) or scratch(module, found) <= room(found, chip)
