"""Computes tiles that are larger than local memory in parts: a loop over pieces of one of their dimensions.

What a block stores, and what that is computed from, is put into the loop if every operation is independent along the
dimension (`dimensions`): element-wise operations, loads, broadcasts, products along rows or columns, reductions and
scans along other dimensions. A loop that carries large tiles is computed anew for each piece. Piece by piece, an access
moves by as many positions and its bounds are clipped. What has no such dimension, as a vector for the columns, stays
before the loop. If tiles are still too large, the pieces are split along another dimension.

What is loaded from the array that is stored to must have the positions of the stored tile. Whether two arguments are
the same array is checked at run time; if they are, with other positions, the kernel fails. So the pieces may be
computed in any order, and the loop is overlapped.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.dialect.operations import Store
from triton_porting_kit.toolchain.mlir import ir

from .editing import Editor, bytes_of, functions, nested, shape_of
from .groups import Group, movable
from .overlaps import pairs
from .pieces import Splitter


def split(module: Any, chip: ChipDescription, limit: int) -> bool:
    """Split the tiles of more than `limit` bytes of a structured module, in MLIR's bindings, in place.

    Returns whether there are any that can be split.
    """
    done = False
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            blocks = _blocks(function.regions[0].blocks[0])
            while blocks:
                block = blocks.pop()
                group = _group(block, limit)
                if group is not None:
                    blocks.append(Splitter(editor, group).run())
                    done = True
    return done


def _blocks(entry: Any) -> list[Any]:
    """The blocks with stores of tiles."""
    stores = [op for op in nested(entry) if _stores_tile(op)]
    return list(dict.fromkeys(store.block for store in stores))


def _stores_tile(operation: Any) -> bool:
    return Store.isa(operation) and bool(shape_of(Store(operation).value))


def _group(block: Any, limit: int) -> Group | None:
    """What to split of a block; None if nothing is too large, or it cannot be split."""
    stores = [op.operation for op in block.operations if _stores_tile(op.operation)]
    for store in sorted(stores, key=lambda store: -bytes_of(Store(store).value)):
        for d, size in enumerate(shape_of(Store(store).value) or ()):
            group = Group(size)
            if not group.add_store(store, d) or group.largest() <= limit:
                continue
            _add_others(group, stores)
            if group.choose_rows(limit) and movable(group) and pairs(group) is not None:
                return group
    return None


def _add_others(group: Group, stores: list[Any]) -> None:
    """Add the other stores that are computed from what is split, as far as they can be."""
    for store in stores:
        for d in range(len(shape_of(Store(store).value) or ())):
            if store in group.stores or group.add_store(store, d):
                break
    order = [store for store in stores if store in group.stores]
    group.stores = {store: group.stores[store] for store in order}
