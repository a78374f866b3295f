"""What operations of the loops do to memory that work-items share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from triton_porting_kit.abi import kernel
from triton_porting_kit.compiler.loops.ir.regions import POINTS

GLOBAL, SCRATCH, SLOTS = "global", "scratch", "slots"
"""The memories that work-items share: the arguments', the work-group's scratch, and the slots of it for broadcasts."""

_OWN = ("private", "constant")
"""Address spaces that hold a work-item's own memory, and what nobody writes."""

_ACCESSES = {
    "llvm.load": (True, False, 0),
    "llvm.intr.masked.load": (True, False, 0),
    "llvm.intr.masked.gather": (True, False, 0),
    "llvm.store": (False, True, 1),
    "llvm.intr.masked.store": (False, True, 1),
    "llvm.intr.masked.scatter": (False, True, 1),
    "llvm.atomicrmw": (True, True, 0),
    "llvm.cmpxchg": (True, True, 0),
}
"""By the operation: whether it reads, whether it writes, and which operand says where."""


@dataclass(frozen=True)
class Accesses:
    """The accesses of an operation, those of its regions included."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    once: bool = False
    """Whether something must happen exactly once: a write, or a volatile or atomic load."""
    fails: bool = False
    """Whether it may end the kernel."""
    spreads: bool = False
    """Whether it is, or holds, a loop over points of a tile."""

    def __or__(self, other: Accesses) -> Accesses:
        return Accesses(
            self.reads | other.reads,
            self.writes | other.writes,
            self.once or other.once,
            self.fails or other.fails,
            self.spreads or other.spreads,
        )

    def without(self, memory: str) -> Accesses:
        """The accesses to the other memories."""
        return replace(self, reads=self.reads - {memory}, writes=self.writes - {memory})

    def meets(self, earlier: Accesses) -> bool:
        """Whether it reads what was written, or writes what was read or written."""
        return bool(self.reads & earlier.writes or self.writes & (earlier.reads | earlier.writes))


NONE = Accesses()


@dataclass(frozen=True)
class Since:
    """What work-items have accessed after the last barrier of the work-group.

    `narrow` is what only the first sub-group has accessed, and `recent` the part of it after its own last barrier.
    """

    wide: Accesses = NONE
    narrow: Accesses = NONE
    recent: Accesses = NONE

    @property
    def all(self) -> Accesses:
        return self.wide | self.narrow

    def __or__(self, other: Since) -> Since:
        return Since(self.wide | other.wide, self.narrow | other.narrow, self.recent | other.recent)

    def after(self, found: Accesses, *, is_narrow: bool) -> Since:
        """With the accesses of one more operation, which may be the first sub-group's alone."""
        if is_narrow:
            return replace(self, narrow=self.narrow | found, recent=self.recent | found)
        return replace(self, wide=self.wide | found)

    def without(self, memory: str) -> Since:
        """What was accessed of the other memories."""
        return Since(*(each.without(memory) for each in (self.wide, self.narrow, self.recent)))


def inner(operation: Any) -> Iterator[Any]:
    """The operations of an operation's regions, not those inside of them."""
    for region in operation.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation


def points(operation: Any) -> int:
    """The most iterations of a loop over points of a tile; 0 for anything else."""
    if POINTS not in operation.attributes:
        return 0
    return int(str(operation.attributes[POINTS]).partition(" ")[0])


class Survey:
    """The accesses of a function's operations. `spaces` are the address spaces of pointers (see `cpp.spaces`)."""

    def __init__(self, spaces: Mapping[Any, str]) -> None:
        self._spaces = spaces
        self._known: dict[Any, Accesses] = {}

    def of(self, operation: Any) -> Accesses:
        """The accesses of an operation."""
        known = self._known.get(operation)
        if known is None:
            known = self._own(operation)
            for each in inner(operation):
                known |= self.of(each)
            self._known[operation] = known
        return known

    def _own(self, operation: Any) -> Accesses:
        name = operation.name
        if name == "llvm.call":
            return Accesses(fails=str(operation.attributes["callee"]).strip('"@') == kernel.FAIL)
        if points(operation):
            return Accesses(spreads=True)
        if name not in _ACCESSES:
            return NONE
        reads, writes, place = _ACCESSES[name]
        space = self._spaces.get(operation.operands[place], "")
        if space in _OWN:
            return NONE
        memory = frozenset([SCRATCH if space == "local" else GLOBAL])
        ordered = "volatile_" in operation.attributes or _order(operation) != "0"
        return Accesses(
            memory if reads else frozenset(), memory if writes else frozenset(), writes or ordered
        )


def _order(operation: Any) -> str:
    """The number of an access's memory order; 0 for none."""
    if "ordering" not in operation.attributes:
        return "0"
    return str(operation.attributes["ordering"]).partition(" ")[0]
