"""What must be true of the arrays of a group (`groups`): no piece may store what another one loads or stores."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.operations import Assert, Gather, Store
from triton_porting_kit.toolchain.mlir import ir

from .editing import EQ, NE, SGT, SLE, Editor, element_of, number_of, shape_of
from .groups import Group, base_of, view_of

OVERLAPPING = (
    "arrays overlap, of which a part is stored before another part is loaded: the tiles are too large"
)
"""The message of the check at run time."""


def pairs(group: Group) -> list[tuple[Any, Any]] | None:
    """The pairs of an access and a store that have to be to different arrays, or to the same positions, each with a
    place of its own. None if a pair is to the same array and known to be at other positions.
    """
    found = []
    stores = list(group.stores)
    for number, store in enumerate(stores):
        passed = [load for load in group.passed if _before(store, load)]
        for other in (*group.loads, *stores[:number], *passed):
            bases = (Store(store).base, base_of(other))
            if not all(isinstance(base.owner, ir.Block) and not _in_loop(base) for base in bases):
                return None  # pointers that are computed, or read from memory
            alike = _alike(group, other, store) and _positions(other) == _positions(store)
            if bases[0] == bases[1] and not alike:
                return None
            found.append((other, store))
    return found


def check(editor: Editor, group: Group) -> None:
    """Let the kernel fail where a pair is not as it must be."""
    conditions = [
        condition
        for access, store in pairs(group) or []
        if (condition := _apart(editor, group, access, store)) is not None
    ]
    if conditions:
        message = {"message": ir.StringAttr.get(OVERLAPPING)}
        editor.create(Assert, [], message, condition=editor.both(conditions))


def _apart(editor: Editor, group: Group, access: Any, store: Any) -> Any | None:
    """Whether the arrays differ, or pieces have places of their own; None if that is known."""
    bases = (base_of(access), base_of(store))
    possible = []
    if bases[0] != bases[1]:
        first, second = (editor.value("llvm.ptrtoint", [base], editor.types.i64) for base in bases)
        # Arrays without elements may have the same address.
        possible += [editor.compare(NE, first, second), editor.compare(EQ, first, editor.constant(0))]
    if _alike(group, access, store):
        own = [
            editor.compare(EQ, a, b)
            for a, b in zip(_positions(access), _positions(store), strict=True)
            if a != b
        ]
        own += _distinct(editor, store)
        if not own:
            return None
        possible.append(editor.both(own))
    total = possible[0]
    for condition in possible[1:]:
        total = editor.value("arith.ori", [total, condition], editor.types.i1)
    return total


def _in_loop(argument: Any) -> bool:
    return bool(argument.owner.owner.operation.name != "func.func")


def _alike(group: Group, access: Any, store: Any) -> bool:
    """Whether an access before a store has the same positions if the offsets and strides are the same. A piece has all
    loads before its stores.
    """
    if Gather.isa(access) or group.in_loop(access) or not _before(access, store):
        return False
    if group.stores.get(access, group.along.get(access)) != group.stores[store]:
        return False
    views = (view_of(access), view_of(store))
    if any(view.wrap_dims for view in views):
        return False
    tiles = tuple(view.tile for view in views)
    return shape_of(tiles[0]) == shape_of(tiles[1]) and element_of(tiles[0]) == element_of(tiles[1])


def _before(access: Any, store: Any) -> bool:
    """Whether an access comes first. One of another block does: it is before the loop around the store."""
    for operation in store.block.operations:
        if operation.operation in (access, store):
            return bool(operation.operation == access)
    return True


def _positions(access: Any) -> list[Any]:
    """What decides where the elements of an access lie."""
    return [view_of(access).offset, *view_of(access).strides]


def _distinct(editor: Editor, store: Any) -> list[Any]:
    """What must be true for the elements of a store to have places of their own; empty if that is known.

    In the order of their strides, each dimension steps over all that those before it reach.
    """
    view = Store(store)
    shape = shape_of(view.value) or ()
    dims = [d for d, size in enumerate(shape) if size > 1]
    known = {d: number_of(view.strides[d]) for d in dims}
    numbers = {d: abs(stride) for d, stride in known.items() if stride is not None}
    if len(numbers) == len(dims) and all(
        numbers[d] > sum(numbers[o] * (shape[o] - 1) for o in dims if o != d and numbers[o] <= numbers[d])
        for d in dims
    ):
        return []
    one, nothing = editor.constant(1), editor.constant(0)
    steps = {d: editor.i64("math.absi", view.strides[d]) for d in dims}
    counts = {
        d: editor.i64("arith.subi", view.high[d], view.low[d]) if view.high else editor.constant(shape[d])
        for d in dims
    }
    reach = {
        d: editor.i64(
            "arith.muli",
            steps[d],
            editor.i64("arith.maxsi", editor.i64("arith.subi", counts[d], one), nothing),
        )
        for d in dims
    }
    found = []
    for d in dims:
        within = nothing
        for other in dims:
            if other != d:
                nearer = editor.compare(SLE, steps[other], steps[d])
                within = editor.add(within, editor.i64("arith.select", nearer, reach[other], nothing))
        over = editor.compare(SGT, steps[d], within)
        alone = editor.compare(SLE, counts[d], one)
        found.append(editor.value("arith.ori", [over, alone], editor.types.i1))
    return found
