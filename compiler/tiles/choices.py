"""How a kernel uses the units: the first choice whose buffers fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triton_porting_kit.chips.description import ChipDescription

from .editing import copied
from .memories import vector_memory
from .overlap import Level
from .passes import TILE_PASSES, TilePass
from .place import plan
from .plan import Plan
from .room import surely_fits
from .scalars import load_by_core, moved_scalars


@dataclass(frozen=True)
class Choice:
    """`raises`: products go to the matrix unit. `overlaps`: how much loops start early; None: nothing. `parts`: a piece
    of a tile is at most the vector memory divided by this; 1: tiles are not split. `by_core`: the core loads scalars,
    which have no buffers then.
    """

    raises: bool
    overlaps: Level | None
    parts: int = 1
    by_core: bool = False

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
        yield Choice(raises, None, by_core=True)


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
    has_room: Callable[[Any, Plan], bool],
    passes: Mapping[str, TilePass] = TILE_PASSES,
) -> tuple[Any, Plan]:
    """The stage ``tiles`` of a structured module, which `read` gives anew for each choice, in MLIR's bindings; and the
    plan of its buffers.

    `has_room` tells whether what vector code of a module of this stage keeps has room beside the buffers of a plan,
    which it may place anew. If no choice fits, the result is that of the last one which does not split tiles, and
    placing its buffers or writing its loops says what is missing.
    """
    trial = _Trial(read, chip, num_stages, passes)
    found: tuple[Any, Plan] | None = None
    alike: set[Choice] = set()
    for choice in choices(num_stages):
        if choice in alike:
            continue
        passed = trial.of(choice)
        alike |= passed.alike
        found = passed.module, plan(passed.module, chip)
        if _fits(*found, chip, has_room):
            return found
    assert found is not None
    size = chip.local_bytes(vector_memory(chip))
    if "split" not in passes or not passes["split"](read(), chip, size // MOST_PARTS):
        return found
    for choice in splitting(num_stages):
        passed = trial.of(choice)
        if not passed.split:
            continue
        pieces = passed.module, plan(passed.module, chip)
        if _fits(*pieces, chip, has_room):
            return pieces
    return found


@dataclass
class _Passed:
    """A module behind some passes. `split`: whether tiles were split; `ended`: they should have been, so nothing else
    has run. `raised`: whether there were products for the matrix unit. `less`: whether a lower level would take less
    memory. `scalars`: whether there are scalars that the core could load itself. `alike`: the choices that would have
    given the same module.
    """

    module: Any
    split: bool = False
    ended: bool = False
    raised: bool = False
    less: bool = False
    scalars: bool = False
    alike: set[Choice] = field(default_factory=set)


_BY_LEVEL = ("sending", "overlap")
"""The passes that a level changes or leaves out."""


class _Trial:
    """Tries choices on one kernel. The passes before those that depend on the level run once for all levels."""

    def __init__(
        self, read: Callable[[], Any], chip: ChipDescription, num_stages: int, passes: Mapping[str, TilePass]
    ) -> None:
        self._read, self._chip, self._num_stages = read, chip, num_stages
        self._passes = passes
        self._begun: dict[tuple[bool, int, bool], _Passed] = {}

    def of(self, choice: Choice) -> _Passed:
        """Run the passes of a choice. The rest does not run if tiles should be split and are not."""
        names = list(self._passes)
        first = next((at for at, name in enumerate(names) if name in _BY_LEVEL), len(names))
        which = choice.raises, choice.parts, choice.by_core
        begun = self._begun.get(which)
        if begun is None:
            begun = _Passed(self._read())
            self._run(begun, choice, names[:first])
            self._begun[which] = begun
        passed = replace(begun, module=copied(begun.module))
        self._run(passed, choice, names[first:])
        levels = [choice.overlaps] if choice.overlaps is None or passed.less else list(Level)
        raises = (True,) if passed.raised else (True, False)
        passed.alike = {
            replace(choice, raises=raised, overlaps=level) for raised in raises for level in levels
        }
        if choice.overlaps is None and not passed.scalars:
            passed.alike |= {Choice(raised, None, by_core=True) for raised in raises}
        return passed

    def _run(self, passed: _Passed, choice: Choice, names: Sequence[str]) -> None:
        """Run passes of a choice, by name."""
        chip, module = self._chip, passed.module
        for name in names:
            run = self._passes[name]
            if name in choice.leaves_out or passed.ended:
                continue
            if name == "split":
                passed.split = run(module, chip, chip.local_bytes(vector_memory(chip)) // choice.parts)
                passed.ended = not passed.split
            elif name == "products":
                passed.raised = run(module, chip) != 0
            elif name == "overlap":
                passed.less = run(module, chip, choice.overlaps, self._num_stages) is not False
            else:
                run(module, chip)
            if name == "transfer":
                passed.scalars = bool(moved_scalars(module))
                if choice.by_core:
                    load_by_core(module, chip)


def _fits(module: Any, found: Plan, chip: ChipDescription, has_room: Callable[[Any, Plan], bool]) -> bool:
    """Whether buffers fit their memories, and what vector code keeps has room beside them.

    Lowering a module tells what that is. Where all tensors would fit, that is not needed.
    """
    if any(found.used(memory.name) > chip.local_bytes(memory) for memory in chip.local_memories):
        return False
    return surely_fits(found, chip) or has_room(module, found)
