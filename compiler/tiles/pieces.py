"""The loop over the pieces of what is split (`groups`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Load, Range, Store
from triton_porting_kit.toolchain.mlir import ir

from .editing import Editor, nested, shape_of
from .groups import PIECES, Group, yielded
from .overlaps import check
from .programs import UNORDERED


class Splitter:
    """Replaces a group by a loop over its pieces."""

    def __init__(self, editor: Editor, group: Group) -> None:
        self._editor, self._group = editor, group
        self._pieces: dict[Any, Any] = {}
        """Values, and their pieces."""
        self._whole: dict[Any, Any] = {}
        """Values of a loop that are not split, and their copies."""
        self._offsets: dict[Any, Any] = {}
        self._first: Any = None
        """The first position of the piece, as i64."""

    def run(self) -> Any:
        """Create the loop before the last store, and erase what it replaces. Returns its block."""
        editor, group = self._editor, self._group
        last = list(group.stores)[-1]
        editor.before(last)
        check(editor, group)
        bounds = [editor.constant(0), editor.constant(group.size), editor.constant(group.rows)]
        marks = {UNORDERED: ir.UnitAttr.get(), PIECES: ir.UnitAttr.get()}
        loop = editor.op("scf.for", bounds, [], marks, regions=1)
        block = loop.regions[0].blocks.append(editor.types.i64)
        self._first = block.arguments[0]
        editor.at = ir.InsertionPoint(block)
        end = editor.op("scf.yield", [], [])
        tops = [op for op in group.operations if not group.in_loop(op)]
        replaced = [*tops, *(loop for loop in group.loops if not group.in_loop(loop))]
        for operation in tops:
            self._make(operation, end)
        for store, d in group.stores.items():
            self._need(store, end)
            editor.at, editor.location = ir.InsertionPoint(end), store.location
            self._access(Store, store, [], d)
        for store in group.stores:
            store.erase()
        _erase_unused(replaced)
        return block

    # --- the pieces --------------------------------------------------------------------------------------

    def _make(self, operation: Any, end: Any) -> None:
        """The piece of an operation, unless it is there."""
        if operation.results[0] in self._pieces:
            return
        self._need(operation, end)
        self._copy(operation, end)

    def _need(self, operation: Any, end: Any) -> None:
        """The pieces of what an operation takes."""
        for value in operation.operands:
            self._piece(_owner(value), end)

    def _piece(self, operation: Any, end: Any) -> None:
        """The pieces of a loop's results, or of those of an operation outside the loops."""
        if operation in self._group.loops:
            self._loop(operation, end)
        elif operation in self._group.operations and not self._group.in_loop(operation):
            self._make(operation, end)

    def _copy(self, operation: Any, end: Any) -> None:
        editor, group = self._editor, self._group
        parts, d = group.operations[operation], group.along[operation]
        editor.at, editor.location = ir.InsertionPoint(end), operation.location
        if Load.isa(operation):
            made = self._access(Load, operation, [self._kind(operation.results[0], d)], d)
        elif Range.isa(operation):
            made = self._range(operation)
        else:
            made = self._clone(operation, end)
            for number in parts:
                made.operands[number] = self._pieces[operation.operands[number]]
            for result in made.results:
                result.set_type(self._kind(result, d))
            _fit_attributes(made)
        self._pieces.update(zip(operation.results, made.results, strict=True))

    def _clone(self, operation: Any, end: Any) -> Any:
        """A copy of an operation, with the copies of what is not split."""
        made = operation.clone(ip=ir.InsertionPoint(end)).operation
        inside = [inner for region in made.regions for block in region.blocks for inner in nested(block)]
        for current in (made, *inside):
            for number, value in enumerate(current.operands):
                if value in self._whole:
                    current.operands[number] = self._whole[value]
        return made

    def _kind(self, value: Any, d: int) -> Any:
        shape = list(shape_of(value) or ())
        shape[d] = self._group.rows
        return self._editor.types.tensor(tuple(shape), value.type.element_type)

    def _range(self, operation: Any) -> Any:
        editor = self._editor
        kind = self._kind(operation.results[0], 0)
        first = editor.create(Range, [kind], Range.attributes_in(operation)).results[0]
        row = editor.value("arith.trunci", [self._first], editor.types.i32)
        return editor.add(first, editor.splat(row, (self._group.rows,))).owner

    def _access(
        self, cls: type[Load[Any]] | type[Store[Any]], operation: Any, kinds: Sequence[Any], d: int
    ) -> Any:
        """A load or store of the piece."""
        editor, view = self._editor, cls(operation)
        operands = {
            name: [self._mapped(value) for value in values] for name, values in view.by_name().items()
        }
        if d in view.wrap_dims:
            number = list(view.wrap_dims).index(d)
            operands["wrap_start"][number] = editor.add(operands["wrap_start"][number], self._first)
        else:
            operands["offset"] = [self._moved(operation, operands["offset"][0], operands["strides"][d])]
        for name in ("low", "high"):
            if operands[name]:
                operands[name][d] = self._clipped(operands[name][d])
        return editor.create(cls, list(kinds), cls.attributes_in(operation), **operands)

    def _moved(self, access: Any, offset: Any, stride: Any) -> Any:
        """The offset of the piece: one value for all accesses with the same offset and stride."""
        editor, key = self._editor, (offset, stride)
        if key in self._offsets:
            return self._offsets[key]
        moved = editor.value("arith.muli", [self._first, stride], editor.types.i64)
        made = editor.add(offset, moved)
        if not self._group.in_loop(access):
            self._offsets[key] = made
        return made

    def _mapped(self, value: Any) -> Any:
        """A value in the loop over pieces."""
        return self._pieces.get(value, self._whole.get(value, value))

    def _clipped(self, bound: Any) -> Any:
        """A bound of the tile as one of the piece's."""
        editor = self._editor
        left = editor.i64("arith.subi", bound, self._first)
        most = editor.i64("arith.minsi", left, editor.constant(self._group.rows))
        return editor.i64("arith.maxsi", most, editor.constant(0))

    # --- loops -------------------------------------------------------------------------------------------

    def _loop(self, loop: Any, end: Any) -> None:
        """A loop of the group for the piece, unless it is there."""
        editor, found = self._editor, self._group.loops[loop]
        numbers = sorted({*found.split, *found.kept})
        if not numbers or loop.results[numbers[0]] in {**self._pieces, **self._whole}:
            return
        self._need(loop, end)
        if not self._group.in_loop(loop):
            self._need_within(loop, end)
        editor.at, editor.location = ir.InsertionPoint(end), loop.location
        initial = [self._mapped(loop.operands[3 + number]) for number in numbers]
        bounds = [self._whole.get(value, value) for value in list(loop.operands)[:3]]
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        kinds = [value.type for value in initial]
        made = editor.op("scf.for", [*bounds, *initial], kinds, attributes, regions=1)
        old = loop.regions[0].blocks[0]
        block = made.regions[0].blocks.append(old.arguments[0].type, *kinds)
        self._whole[old.arguments[0]] = block.arguments[0]
        for place, number in enumerate(numbers):
            kept = self._pieces if number in found.split else self._whole
            kept[old.arguments[1 + number]] = block.arguments[1 + place]
        editor.at = ir.InsertionPoint(block)
        terminator = editor.op("scf.yield", [], [])
        self._body(old, terminator)
        yields = [self._mapped(yielded(loop)[number]) for number in numbers]
        editor.at, editor.location = ir.InsertionPoint(terminator), loop.location
        editor.op("scf.yield", yields, [])
        terminator.erase()
        for place, number in enumerate(numbers):
            kept = self._pieces if number in found.split else self._whole
            kept[loop.results[number]] = made.results[place]

    def _need_within(self, loop: Any, end: Any) -> None:
        """The pieces of what the body of an outermost loop takes from outside it."""
        for operation in nested(loop.regions[0].blocks[0]):
            for owner in map(_owner, operation.operands):
                if owner is not None and not self._group.in_loop(owner):
                    self._piece(owner, end)

    def _body(self, block: Any, end: Any) -> None:
        """What the group needs of a loop's body, in its order."""
        group = self._group
        for operation in [operation.operation for operation in block.operations]:
            if operation in group.loops:
                self._loop(operation, end)
            if operation in group.whole:
                made = self._clone(operation, end)
                self._whole.update(zip(operation.results, made.results, strict=True))
            if operation in group.operations:
                self._copy(operation, end)


def _owner(value: Any) -> Any:
    """The operation whose result a value is; None for an argument of a block."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _erase_unused(operations: Sequence[Any]) -> None:
    """Erase those of the operations whose results nothing uses."""
    left = list(operations)
    while True:
        unused = [op for op in left if not any(list(result.uses) for result in op.results)]
        if not unused:
            return
        for operation in unused:
            left.remove(operation)
            operation.erase()


def _fit_attributes(operation: Any) -> None:
    """Let attributes that repeat the result's type agree with it."""
    kind = operation.results[0].type
    if operation.name == "arith.constant":
        value = operation.attributes["value"].get_splat_value()
        operation.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, value)
    elif operation.name == "tensor.expand_shape":
        operation.attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(kind.shape))
