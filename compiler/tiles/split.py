"""Computes tiles that are larger than local memory in parts: a loop over pieces of their first dimension.

What a block stores, and what that is computed from, is put into the loop if every operation is independent along the
first dimension: element-wise operations, loads, broadcasts, reductions and scans along other dimensions. Piece by
piece, an access moves by as many rows and its bounds are clipped. What has no such dimension, as a vector for the
columns, stays before the loop.

What is loaded from the array that is stored to must have the positions of the stored tile. Whether two arguments are
the same array is checked at run time; if they are, with other positions, the kernel fails. So the pieces may be
computed in any order, and the loop is overlapped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.dialect.operations import (
    Assert,
    ClampF,
    FpToFp,
    Function,
    Gather,
    Load,
    Map,
    Range,
    Reduce,
    Scan,
    Store,
)
from triton_porting_kit.compiler.dialect.schema import Trait
from triton_porting_kit.compiler.dialect.upstream import ELEMENTWISE, TRAITS
from triton_porting_kit.toolchain.mlir import ir

from .editing import EQ, NE, Editor, bytes_of, element_of, functions, nested, shape_of
from .programs import UNORDERED

OVERLAPPING = (
    "arrays overlap, of which a part is stored before another part is loaded: the tiles are too large"
)
"""The message of the check at run time."""

_EFFECTS = Trait.WRITES | Trait.TELLS
_TRAITS = {**TRAITS, "linalg.yield": Trait.TERMINATOR}


def split(module: Any, chip: ChipDescription, limit: int) -> bool:
    """Split the tiles of more than `limit` bytes of a structured module, in MLIR's bindings, in place.

    Returns whether there are any that can be split.
    """
    done = False
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            entry = function.regions[0].blocks[0]
            stores = [op for op in nested(entry) if Store.isa(op) and shape_of(Store(op).value)]
            for block in dict.fromkeys(store.block for store in stores):
                group = _group([store for store in stores if store.block == block], limit)
                if group is not None:
                    _Splitter(editor, group).run()
                    done = True
    return done


# --- what is split ------------------------------------------------------------------------------------


@dataclass
class _Group:
    """Stores of a block and what they are computed from, each after what it needs. `rows`: those of a piece; `size`:
    those of the tiles.
    """

    size: int
    rows: int = 0
    stores: list[Any] = field(default_factory=list)
    operations: dict[Any, list[int]] = field(default_factory=dict)
    """Each operation, and the operands that are split."""

    @property
    def accesses(self) -> list[Any]:
        return [*(op for op in self.operations if Load.isa(op) or Gather.isa(op)), *self.stores]

    def add(self, value: Any) -> bool:
        """Add what a split value is computed from. Returns False if that depends on other rows."""
        if isinstance(value.owner, ir.Block):
            return False
        operation = value.owner.operation
        if operation in self.operations:
            return True
        rule = _RULES.get(operation.name)
        if rule is None or any((shape_of(result) or (0,))[0] != self.size for result in operation.results):
            return False
        parts = rule(operation)
        if parts is None or not all(self.add(operation.operands[number]) for number in parts):
            return False
        self.operations[operation] = parts
        return True


def _group(stores: list[Any], limit: int) -> _Group | None:
    """What to split of a block with these stores; None if nothing is too large, or it cannot be split."""
    largest = max(stores, key=lambda store: bytes_of(Store(store).value))
    size = (shape_of(Store(largest).value) or ())[0]
    group = _Group(size, size)
    for store in stores:
        view = Store(store)
        if (shape_of(view.value) or ())[0] != size:
            continue
        if view.volatile or 0 in view.wrap_dims:
            return None
        group.stores.append(store)
        if not all(group.add(value) for value in (view.value, view.mask) if value is not None):
            return None
    row = max(bytes_of(_tile(op)) for op in group.accesses) // size
    while group.rows > 1 and group.rows * row > limit:
        group.rows //= 2
    movable = group.rows < size and _movable(group) and _checks(group) is not None
    return group if movable else None


def _movable(group: _Group) -> bool:
    """Whether the accesses can move to the last store: nothing between them may see the difference."""
    block = group.stores[0].block
    accesses, begun, stored = set(group.accesses), False, False
    if any(op.block != block for op in accesses):
        return False
    for operation in block.operations:
        current = operation.operation
        if current in accesses:
            begun = True
            stored = stored or Store.isa(current)
        elif begun:
            inside = [
                current,
                *(op for region in current.regions for inner in region.blocks for op in nested(inner)),
            ]
            traits = [_TRAITS.get(op.name, _EFFECTS) for op in inside]
            if any(found & _EFFECTS or (stored and found & Trait.READS) for found in traits):
                return False
        if current == group.stores[-1]:
            break
    return True


def _checks(group: _Group) -> list[tuple[Any, Any]] | None:
    """The pairs of accesses that may only be to different arrays, or to the same positions; None if a pair is to the
    same array and not known to have the same positions.
    """
    found = []
    for number, store in enumerate(group.stores):
        loads = [op for op in group.operations if Load.isa(op) or Gather.isa(op)]
        for other in (*loads, *group.stores[:number]):
            bases = (Store(store).base, _base(other))
            if not all(isinstance(base.owner, ir.Block) for base in bases):
                return None  # pointers that are computed, or read from memory
            if bases[0] != bases[1]:
                found.append((other, store))
            elif not _alike(other, store) or _positions(other) != _positions(store):
                return None
    return found


def _base(access: Any) -> Any:
    return Gather(access).base if Gather.isa(access) else _view(access).base


def _view(access: Any) -> Load[Any] | Store[Any]:
    return Load(access) if Load.isa(access) else Store(access)


def _tile(access: Any) -> Any:
    return Gather(access).tile if Gather.isa(access) else _view(access).tile


def _alike(access: Any, store: Any) -> bool:
    """Whether two accesses have the same positions if their offsets and strides are the same."""
    if Gather.isa(access) or _view(access).wrap_dims or _view(store).wrap_dims:
        return False
    tiles = (_tile(access), _tile(store))
    return shape_of(tiles[0]) == shape_of(tiles[1]) and element_of(tiles[0]) == element_of(tiles[1])


def _positions(access: Any) -> list[Any]:
    return [_view(access).offset, *_view(access).strides]


# --- which operands are split with the result; None: the operation depends on other rows ---------------


def _tensors(operation: Any) -> list[int]:
    return [n for n, value in enumerate(operation.operands) if shape_of(value) is not None]


def _nothing(operation: Any) -> list[int] | None:
    return []


def _constant(operation: Any) -> list[int] | None:
    return [] if operation.attributes["value"].is_splat else None


def _access(operation: Any) -> list[int] | None:
    view: Any = Load(operation) if Load.isa(operation) else Gather(operation)
    wraps = Load.isa(operation) and 0 in view.wrap_dims
    return None if view.volatile or wraps else _tensors(operation)


def _broadcast(operation: Any) -> list[int] | None:
    return [1] if 0 in list(operation.attributes["dimensions"]) else [0, 1]


def _transpose(operation: Any) -> list[int] | None:
    return [0, 1] if next(iter(operation.attributes["permutation"])) == 0 else None


def _reshape(operation: Any) -> list[int] | None:
    kept = (shape_of(operation.operands[0]) or (0,))[0] == (shape_of(operation.results[0]) or ())[0]
    return [0] if kept else None


def _along(operation: Any) -> list[int] | None:
    axis = Reduce(operation).axis if Reduce.isa(operation) else Scan(operation).axis
    return None if axis == 0 else _tensors(operation)


def _map(operation: Any) -> list[int] | None:
    calls = any(
        _TRAITS.get(op.name, _EFFECTS) & _EFFECTS
        for region in operation.regions
        for block in region.blocks
        for op in nested(block)
    )
    return None if calls or Map(operation).pack != 1 else _tensors(operation)


_RULES: dict[str, Callable[[Any], list[int] | None]] = {
    **dict.fromkeys(sorted(ELEMENTWISE), _tensors),
    **{cls.OPERATION_NAME: _tensors for cls in (Function, FpToFp, ClampF)},
    Map.OPERATION_NAME: _map,
    Range.OPERATION_NAME: _nothing,
    "tensor.splat": _nothing,
    "tensor.empty": _nothing,
    "arith.constant": _constant,
    "linalg.broadcast": _broadcast,
    "linalg.transpose": _transpose,
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    Load.OPERATION_NAME: _access,
    Gather.OPERATION_NAME: _access,
    Reduce.OPERATION_NAME: _along,
    Scan.OPERATION_NAME: _along,
}


# --- the loop over pieces -----------------------------------------------------------------------------


class _Splitter:
    """Replaces a group by a loop over its pieces."""

    def __init__(self, editor: Editor, group: _Group) -> None:
        self._editor, self._group = editor, group
        self._pieces: dict[Any, Any] = {}
        self._row: Any = None
        """The first row of the piece, as i64."""
        self._bounds: dict[Any, Any] = {}

    def run(self) -> None:
        """Create the loop before the last store, and erase what it replaces."""
        editor, group = self._editor, self._group
        editor.before(group.stores[-1])
        self._check()
        bounds = [editor.constant(0), editor.constant(group.size), editor.constant(group.rows)]
        loop = editor.op("scf.for", bounds, [], {UNORDERED: ir.UnitAttr.get()}, regions=1)
        block = loop.regions[0].blocks.append(editor.types.i64)
        self._row = block.arguments[0]
        editor.at = ir.InsertionPoint(block)
        end = editor.op("scf.yield", [], [])
        for operation, parts in group.operations.items():
            editor.at, editor.location = ir.InsertionPoint(end), operation.location
            self._copy(operation, parts)
        for store in group.stores:
            editor.at, editor.location = ir.InsertionPoint(end), store.location
            self._access(Store, store, [])
            store.erase()
        for operation in reversed(group.operations):
            if not any(list(result.uses) for result in operation.results):
                operation.erase()

    def _check(self) -> None:
        """The kernel fails if arrays are the same, and positions are not."""
        editor = self._editor
        conditions = []
        for access, store in _checks(self._group) or []:
            first, second = (
                editor.value("llvm.ptrtoint", [_base(op)], editor.types.i64) for op in (access, store)
            )
            differ = self._either(
                editor.compare(NE, first, second), editor.compare(EQ, first, editor.constant(0))
            )  # arrays without elements may have the same address
            if _alike(access, store):
                pairs = zip(_positions(access), _positions(store), strict=True)
                same = editor.both([editor.compare(EQ, a, b) for a, b in pairs if a != b])
                differ = None if same is None else self._either(differ, same)
            if differ is not None:
                conditions.append(differ)
        if conditions:
            message = {"message": ir.StringAttr.get(OVERLAPPING)}
            editor.create(Assert, [], message, condition=editor.both(conditions))

    def _either(self, first: Any, second: Any) -> Any:
        return self._editor.value("arith.ori", [first, second], self._editor.types.i1)

    def _kind(self, value: Any) -> Any:
        shape = shape_of(value) or ()
        return self._editor.types.tensor((self._group.rows, *shape[1:]), value.type.element_type)

    def _copy(self, operation: Any, parts: list[int]) -> None:
        """The piece of an operation's results."""
        if Load.isa(operation):
            made = self._access(Load, operation, [self._kind(operation.results[0])])
        elif Range.isa(operation):
            made = self._range(operation)
        else:
            made = operation.clone(ip=self._editor.at).operation
            for number in parts:
                made.operands[number] = self._pieces[operation.operands[number]]
            for result in made.results:
                result.set_type(self._kind(result))
            _fit_attributes(made)
        self._pieces.update(zip(operation.results, made.results, strict=True))

    def _range(self, operation: Any) -> Any:
        editor = self._editor
        kind = self._kind(operation.results[0])
        first = editor.create(Range, [kind], Range.attributes_in(operation)).results[0]
        row = editor.value("arith.trunci", [self._row], editor.types.i32)
        return editor.add(first, editor.splat(row, (self._group.rows,))).owner

    def _access(self, cls: type[Load[Any]] | type[Store[Any]], operation: Any, kinds: Sequence[Any]) -> Any:
        """A load or store of the piece's rows."""
        editor, view = self._editor, cls(operation)
        moved = editor.value("arith.muli", [self._row, view.strides[0]], editor.types.i64)
        operands = {
            name: [
                self._pieces.get(value, value) if shape_of(value) is not None else value for value in group
            ]
            for name, group in view.by_name().items()
        }
        operands["offset"] = [editor.add(view.offset, moved)]
        for name in ("low", "high"):
            if operands[name]:
                operands[name] = [self._clipped(operands[name][0]), *operands[name][1:]]
        return editor.create(cls, list(kinds), cls.attributes_in(operation), **operands)

    def _clipped(self, bound: Any) -> Any:
        """A bound of the rows as one of the piece's."""
        editor = self._editor
        if bound not in self._bounds:
            left = editor.i64("arith.subi", bound, self._row)
            most = editor.i64("arith.minsi", left, editor.constant(self._group.rows))
            self._bounds[bound] = editor.i64("arith.maxsi", most, editor.constant(0))
        return self._bounds[bound]


def _fit_attributes(operation: Any) -> None:
    """Let attributes that repeat the result's type agree with it."""
    kind = operation.results[0].type
    if operation.name == "arith.constant":
        value = operation.attributes["value"].get_splat_value()
        operation.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, value)
    elif operation.name == "tensor.expand_shape":
        operation.attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(kind.shape))
