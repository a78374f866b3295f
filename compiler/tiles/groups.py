"""What is split together: stores of a block along one dimension, and what the stored tiles are computed from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Gather, Load, Store
from triton_porting_kit.compiler.dialect.schema import Trait
from triton_porting_kit.toolchain.mlir import ir

from .dimensions import EFFECTS, PRODUCTS, Parts, parts_of, traits_of
from .editing import bytes_of, nested, shape_of

PIECES = "tpk.pieces"
"""The attribute of the loops over pieces."""
FEWEST = 16
"""Rows, or columns, of a piece of a product, for which a matrix unit is made."""


@dataclass
class Loop:
    """A loop that is computed anew for each piece: what it carries, by number: `split` along a dimension, and `kept` as
    it is.
    """

    split: dict[int, int] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)


@dataclass
class Group:
    """Stores of one block, and what they are computed from, each after what it needs. `size`: that of the dimension;
    `rows`: the part of it in a piece.
    """

    size: int
    rows: int = 0
    stores: dict[Any, int] = field(default_factory=dict)
    """Each store, and the dimension of its tile."""
    operations: dict[Any, Parts] = field(default_factory=dict)
    """Each operation, and the operands that are split, along which dimension."""
    along: dict[Any, int] = field(default_factory=dict)
    """The dimension of each operation's results."""
    loops: dict[Any, Loop] = field(default_factory=dict)
    whole: dict[Any, None] = field(default_factory=dict)
    """Operations in these loops that are not split, and needed."""
    passed: list[Any] = field(default_factory=list)
    """Loads that stay where they are, before the pieces, although a store comes before them."""

    @property
    def loads(self) -> list[Any]:
        """Loads and gathers, in the loops also those that are not split."""
        return [op for op in (*self.operations, *self.whole) if Load.isa(op) or Gather.isa(op)]

    def in_loop(self, operation: Any) -> bool:
        """Whether an operation is in one of the loops."""
        return bool(self.outermost(operation) != operation)

    def outermost(self, operation: Any) -> Any:
        """The outermost of the loops that an operation is in, or itself."""
        current = outermost = operation
        while (current := parent_of(current)) is not None:
            if current in self.loops:
                outermost = current
        return outermost

    # --- what the stores are computed from ---------------------------------------------------------

    def add_store(self, store: Any, d: int) -> bool:
        """Add a store, split along `d`. Returns False, and adds nothing, if it cannot be split so."""
        view = Store(store)
        if view.volatile or d in view.wrap_dims or (shape_of(view.value) or ())[d] != self.size:
            return False
        before = (
            dict(self.operations),
            dict(self.along),
            {loop: Loop(dict(found.split), set(found.kept)) for loop, found in self.loops.items()},
            dict(self.whole),
        )
        values = [value for value in (view.value, view.mask) if value is not None]
        if all(self.add(value, d) for value in values) and self._add_whole():
            self.stores[store] = d
            return True
        self.operations, self.along, self.loops, self.whole = before
        return False

    def add(self, value: Any, d: int) -> bool:
        """Add what a value is computed from that is split along `d`. Returns False if that depends on other positions,
        or is split otherwise.
        """
        if (shape_of(value) or (0,) * (d + 1))[d] != self.size:
            return False
        if isinstance(value.owner, ir.Block):
            loop = value.owner.owner.operation
            number = list(value.owner.arguments).index(value) - 1
            return bool(loop in self.loops) and number >= 0 and self._carry(loop, number, d)
        operation = value.owner.operation
        if operation.name == "scf.for":
            return self._add_loop(operation, list(operation.results).index(value), d)
        if operation in self.operations:
            return self.along[operation] == d
        parts = parts_of(operation, d)
        if parts is None or any(
            (shape_of(result) or (0,) * (d + 1))[d] != self.size for result in operation.results
        ):
            return False
        if not all(self.add(operation.operands[number], k) for number, k in parts.items()):
            return False
        self.operations[operation], self.along[operation] = parts, d
        return True

    def _add_loop(self, loop: Any, number: int, d: int) -> bool:
        if loop not in self.loops:
            inside = nested(loop.regions[0].blocks[0])
            if any(traits_of(op) & EFFECTS for op in inside):
                return False
            self.loops[loop] = Loop()
        return self._carry(loop, number, d)

    def _carry(self, loop: Any, number: int, d: int) -> bool:
        split = self.loops[loop].split
        if number in split:
            return split[number] == d
        split[number] = d
        return self.add(loop.operands[3 + number], d) and self.add(yielded(loop)[number], d)

    # --- what is needed as a whole within the loops -------------------------------------------------

    def _add_whole(self) -> bool:
        """Find what the loops compute that is not split. Returns False if that needs the whole of what is split."""
        needed = [value for operation in self.operations for value in self._unsplit(operation)]
        for loop in self.loops:
            needed += list(loop.operands)[:3]
        seen: set[Any] = set()
        while needed:
            value = needed.pop()
            if value in seen:
                continue
            seen.add(value)
            inner = self._whole(value)
            if inner is None:
                return False
            needed += inner
        return True

    def _unsplit(self, operation: Any) -> list[Any]:
        parts = self.operations[operation]
        own = [value for number, value in enumerate(operation.operands) if number not in parts]
        return own + list(_captured(operation))

    def _whole(self, value: Any) -> list[Any] | None:
        """What a value that is needed as a whole is computed from in the loops; None if it is split."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            loop = owner.owner.operation
            if loop not in self.loops:
                return []
            number = list(owner.arguments).index(value) - 1
            return [] if number < 0 else self._whole_carried(loop, number)
        operation = owner.operation
        if operation in self.loops:
            return self._whole_carried(operation, list(operation.results).index(value))
        if not self._is_inside(operation):
            return []
        self.whole[operation] = None
        if Load.isa(operation) and Load(operation).volatile:
            return None
        return [*operation.operands, *_captured(operation)]

    def _whole_carried(self, loop: Any, number: int) -> list[Any] | None:
        found = self.loops[loop]
        if number in found.split:
            return None
        found.kept.add(number)
        return [loop.operands[3 + number], yielded(loop)[number]]

    def _is_inside(self, operation: Any) -> bool:
        current = operation
        while (current := parent_of(current)) is not None:
            if current in self.loops:
                return True
        return False

    # --- how large its tiles are ---------------------------------------------------------------------

    def largest(self) -> int:
        """Bytes of the largest tile that is split and takes memory: what is accessed, multiplied, or carried."""
        tiles = [_tile(op) for op in (*self.operations, *self.stores) if _is_access(op)]
        tiles += [op.results[0] for op in self.operations if op.name in PRODUCTS]
        tiles += [loop.results[number] for loop, found in self.loops.items() for number in found.split]
        return max((bytes_of(tile) for tile in tiles), default=0)

    def choose_rows(self, limit: int) -> bool:
        """Choose pieces of at most `limit` bytes. Returns whether there are several."""
        row = self.largest() // self.size
        products = [op for op in self.operations if op.name in PRODUCTS]
        sides = any(self.along[op] >= len(shape_of(op.results[0]) or ()) - 2 for op in products)
        fewest = FEWEST if sides else 1
        self.rows = self.size
        while self.rows > fewest and self.rows % 2 == 0 and self.rows * row > limit:
            self.rows //= 2
        return self.rows < self.size


def parent_of(operation: Any) -> Any:
    """The operation around another one; None around a function's body."""
    parent = None if operation.parent is None else operation.parent.operation
    return None if parent is None or parent.name in ("func.func", "builtin.module") else parent


def yielded(loop: Any) -> list[Any]:
    """The values that a loop goes on with."""
    block = loop.regions[0].blocks[0]
    return list(block.operations[len(block.operations) - 1].operation.operands)


def _captured(operation: Any) -> Iterator[Any]:
    """The values that the regions of an operation use, from wherever they are."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in nested(block):
                yield from inner.operands


def _is_access(operation: Any) -> bool:
    return Load.isa(operation) or Gather.isa(operation) or Store.isa(operation)


def view_of(access: Any) -> Load[Any] | Store[Any]:
    """A load or store."""
    return Load(access) if Load.isa(access) else Store(access)


def _tile(access: Any) -> Any:
    return Gather(access).tile if Gather.isa(access) else view_of(access).tile


def base_of(access: Any) -> Any:
    """The base of a load, store or gather."""
    return Gather(access).base if Gather.isa(access) else view_of(access).base


# --- whether the stores may wait for the last one --------------------------------------------------------


def movable(group: Group) -> bool:
    """Whether the accesses can move to the last store: nothing on the way may see the difference. `Group.passed` has
    loads that would, if they were of an array that is stored.
    """
    last = list(group.stores)[-1]
    tops = {group.outermost(op) for op in (*group.loads, *group.stores)}
    here = {op for op in tops if op.block == last.block}
    return all(_reaches(op, last, group) for op in tops - here) and _movable_within(here, last, group)


def _reaches(access: Any, last: Any, group: Group) -> bool:
    """Whether an access in a block around that of the stores can move into it, through loops over pieces."""
    around = parent_of(last)
    while around is not None and around.block != access.block:
        if not _only_group(around, group):
            return False
        around = parent_of(around)
    if around is None or not _only_group(around, group):
        return False
    between = False
    for operation in access.block.operations:
        current = operation.operation
        if current == around:
            return between
        between = between or current == access
        if between and any(Trait.WRITES in traits_of(op) for op in _with_nested(current)):
            return False
    return False


def _only_group(loop: Any, group: Group) -> bool:
    """Whether a loop is one over pieces, and writes nothing but the stores of the group."""
    if PIECES not in loop.attributes:
        return False
    inside = nested(loop.regions[0].blocks[0])
    return not any(Trait.WRITES in traits_of(op) for op in inside if op not in group.stores)


def _movable_within(accesses: set[Any], last: Any, group: Group) -> bool:
    begun = stored = False
    group.passed = []
    for operation in last.block.operations:
        current = operation.operation
        if current in accesses:
            begun, stored = True, stored or Store.isa(current)
        elif begun:
            traits = [traits_of(op) for op in _with_nested(current)]
            reads = stored and any(found & Trait.READS for found in traits)
            if any(found & EFFECTS for found in traits) or (reads and not _plain_load(current)):
                return False
            if reads:
                group.passed.append(current)
        if current == last:
            break
    return True


def _plain_load(operation: Any) -> bool:
    return Load.isa(operation) and not Load(operation).volatile


def _with_nested(operation: Any) -> Iterator[Any]:
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            yield from nested(block)
