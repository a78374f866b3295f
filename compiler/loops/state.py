"""What the parts of the lowering share: which operations may move or be deferred, the grid, and the uses of a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from triton_porting_kit.compiler.dialect import Trait, having
from triton_porting_kit.compiler.dialect.operations import AtomicCas, AtomicPoll, AtomicRmw
from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles.access import Access
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Tensor

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
    from triton_porting_kit.compiler.loops.lowering import Lowering

Handler = Callable[["Lowering", Operation], None]

DEFERRED = having(Trait.DEFERRABLE)
MOVABLE = having(Trait.MOVABLE)
WRITES = having(Trait.WRITES)
LOADS = having(Trait.READS) - WRITES
ATOMIC = frozenset(cls.OPERATION_NAME for cls in (AtomicCas, AtomicPoll, AtomicRmw))

SILENT = having(Trait.TERMINATOR) | having(Trait.POSITION)
"""Operations whose lowering needs no comment in the artefact."""


@dataclass(eq=False, repr=False)
class FusedStores:
    """Loop-carried values that are computed in the loop of a store."""

    targets: dict[Tensor, Buffer]
    """The buffer that each value is written to."""
    terminator: Operation
    rest: set[Tensor]
    """Tensors that the terminator still evaluates."""


class CarriedBuffers(dict[Block, dict[int, Buffer]]):
    """For each loop body: the buffers of its loop-carried tensors, by result index."""


class Origins(dict[str, Value]):
    """The kernel argument that a pointer was computed from, by the pointer's name, where known."""


class EarlyStores(dict[Operation, Value]):
    """Stores that a preceding loop may have done already: i1, whether it has."""


class AccessChecks(Protocol):
    """Checks accesses against the bounds of the arguments, in checked mode."""

    argument_bytes: int
    """Of the argument block, with the bounds."""

    def structured(self, operation: Operation, access: Access) -> None: ...
    def explicit(
        self, operation: Operation, base: Value, offsets: Tensor, unit: str, element: str, mask: Tensor | None
    ) -> None: ...


@dataclass(eq=False, repr=False)
class Grid:
    """The grid of a launch, and the program that runs."""

    counts: list[Value]
    program_ids: list[Value] = field(default_factory=list)
    tells: bool = False
    """Whether the kernel tells the host which program it is."""
    threads: int = 1
    """How many GPU threads of a program would print a value that all of them share."""


def program_ids(builder: LoopBuilder, program: Value, counts: Sequence[Value]) -> list[Value]:
    """The position in the grid of a program, an i64, x fastest. `counts`: the programs along each axis, i32."""
    rest, below = program, builder.i64(1)
    ids = []
    for count in counts:
        rest = builder.binary("arith.divui", rest, below)
        below = builder.cast("arith.extui", count, "i64")
        ids.append(builder.cast("arith.trunci", builder.binary("arith.remui", rest, below), "i32"))
    return ids


class Rules(NamedTuple):
    """How operations are lowered."""

    handlers: Mapping[str, Handler]
    fused_stores: Callable[[Lowering, Operation], FusedStores | None] = lambda lowering, operation: None
    joined_stores: Callable[[Lowering, Operation], list[Operation]] = lambda lowering, operation: []


@dataclass(eq=False, repr=False)
class OpenBlock:
    """The block whose operations are being lowered."""

    block: Block | None = None
    alive: list[Def] = field(default_factory=list)
    """Its tensor values that may still be needed."""


class Uses:
    """Which operations evaluate a value. With `checked`, loads also evaluate their offsets and masks themselves."""

    def __init__(self) -> None:
        self.checked = False
        self._roots: dict[Def, frozenset[Operation]] = {}
        self._ends: dict[Def, Operation] = {}

    def end(self, definition: Def | None, operation: Operation) -> None:
        """Say that an operation computes the value into scratch, where all later users read it; in another block than
        the value's, where others may not, nothing is said.
        """
        if definition is not None and definition.block is operation.block:
            self._ends[definition] = operation
            self._roots.clear()

    def reopen(self, definition: Def | None) -> None:
        """Take back `end`: later users evaluate the value again."""
        if definition is not None and definition in self._ends:
            del self._ends[definition]
            self._roots.clear()

    def roots(self, definition: Def) -> frozenset[Operation]:
        """The operations, in the block that defines the value, in whose loops the value will be evaluated."""
        pending = [] if definition in self._roots else [definition]
        while pending:
            current = pending[-1]
            found: set[Operation] = set()
            unknown: list[Def] = []
            for user in current.users:
                ancestor = user.ancestor_in(current.block)
                assert ancestor is not None
                if ancestor is not user or user.name not in DEFERRED:
                    found.add(ancestor)
                    continue
                if self.checked and user.name in LOADS:
                    found.add(user)  # the check evaluates its offsets and its mask, too
                for result in user.results:
                    known = self._roots.get(result)
                    if result in self._ends:
                        found.add(self._ends[result])
                    elif known is None:
                        unknown.append(result)
                    else:
                        found |= known
            if unknown:
                pending += unknown  # and come back to `current`
            else:
                self._roots[pending.pop()] = frozenset(found)
        return self._roots[definition]


def is_fence(operation: Operation) -> bool:
    """Whether earlier loads must be read before this operation: it writes memory, or waits for writes of other
    threads."""
    return operation.name in WRITES or operation.is_volatile
