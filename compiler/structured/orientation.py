"""Tiles turned so that their innermost dimension is the one along which memory is contiguous.

A kernel that reduces columns may have its rows innermost: Inductor puts the reduced dimension last, whatever the
layout. Every consumer of the form, whether it has vectors or DMA engines, takes the last dimension as the fast one.
Where all two-dimensional tensors of a kernel go through operations that treat both dimensions alike, or that name
them, the two are exchanged everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.dialect.operations import (
    AtomicRmw,
    ClampF,
    FpToFp,
    Function,
    Gather,
    Load,
    Reduce,
    Scatter,
    Store,
)
from triton_porting_kit.toolchain.mlir import ir

_LOOP_WEIGHT = 4
"""How often an access in a loop counts beside one outside of it."""


def orient(module: Any) -> bool:
    """Exchange the dimensions of two-dimensional tensors in each kernel where that makes more accesses contiguous.

    Returns whether there was such a kernel.
    """
    turned = False
    for function in module.body.operations:
        if function.operation.name != "func.func" or not function.regions[0].blocks:
            continue
        operations = _operations(function)
        if _gain(operations) > 0 and all(map(_can_turn, operations)):
            for operation in operations:
                _TURNS.get(operation.name, _nothing)(operation)
            for operation in operations:
                _turn_types(operation)
            turned = True
    return turned


def _operations(function: Any) -> list[Any]:
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name != "func.func":
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    return found


def _shape(kind: Any) -> tuple[int, ...] | None:
    """The shape of a tensor of two dimensions or more, which turning would change; None for other types."""
    if not isinstance(kind, ir.RankedTensorType) or kind.rank < 2:
        return None
    return tuple(kind.shape)


def _constant(value: Any) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def _gain(operations: list[Any]) -> int:
    """How many more accesses would be contiguous along their innermost dimension, those in loops counted more often."""
    gain = 0
    for operation in operations:
        access = Load.dyn_cast(operation) or Store.dyn_cast(operation)
        shape = None if access is None else _shape(access.tile.type)
        if access is None or shape is None or len(shape) != 2 or 1 in shape:
            continue
        first, last = (_constant(stride) == 1 for stride in access.strides)
        gain += (first - last) * (_LOOP_WEIGHT if operation.parent.name.startswith("scf.") else 1)
    return gain


def _can_turn(operation: Any) -> bool:
    types = [value.type for value in (*operation.operands, *operation.results)]
    types += [a.type for region in operation.regions for block in region.blocks for a in block.arguments]
    shapes = [shape for shape in map(_shape, types) if shape is not None]
    if not shapes:
        return True
    if any(len(shape) != 2 for shape in shapes):
        return False
    name = operation.name
    if name == "arith.constant":
        return bool(operation.attributes["value"].is_splat)
    if name in ("tensor.expand_shape", "tensor.collapse_shape"):
        narrow = min(value.type.rank for value in (operation.operands[0], operation.results[0]))
        return narrow == 1 and 1 in shapes[0]
    return name.startswith(("arith.", "math.", "scf.")) or name in _TURNED


_TURNED = {
    "tensor.splat", "tensor.empty", "linalg.broadcast", "linalg.yield",
    *(cls.OPERATION_NAME for cls in (
        AtomicRmw, ClampF, FpToFp, Function, Gather, Load, Reduce, Scatter, Store,
    )),
}  # fmt: skip
"""Further operations that treat the dimensions alike, or that `_TURNS` turns."""


# --- operations that name dimensions -------------------------------------------------------------


def _nothing(operation: Any) -> None:
    """The operation treats all dimensions alike."""


def _exchanged(kind: Any) -> Any:
    return ir.RankedTensorType.get(list(reversed(kind.shape)), kind.element_type)


def _turn_types(operation: Any) -> None:
    values = [*operation.results]
    values += [a for region in operation.regions for block in region.blocks for a in block.arguments]
    for value in values:
        if _shape(value.type) is not None:
            value.set_type(_exchanged(value.type))


def _turn_constant(operation: Any) -> None:
    attribute = operation.attributes["value"]
    if _shape(operation.results[0].type) is not None:
        kind = _exchanged(attribute.type)
        operation.attributes["value"] = ir.DenseElementsAttr.get_splat(kind, attribute.get_splat_value())


def _turn_access(operation: Any) -> None:
    access = Load.dyn_cast(operation) or Store.dyn_cast(operation)
    assert access is not None
    if _shape(access.tile.type) is None:
        return
    groups = [list(group) for group in (access.strides, access.low, access.high)]
    place = 2  # behind base and offset
    for group in groups:
        for index, value in enumerate(reversed(group)):
            operation.operands[place + index] = value
        place += len(group)
    if "wrap_dims" in operation.attributes:
        dims = [1 - d for d in ir.DenseI64ArrayAttr(operation.attributes["wrap_dims"])]
        operation.attributes["wrap_dims"] = ir.DenseI64ArrayAttr.get(dims)


def _turn_reduce(operation: Any) -> None:
    if _shape(operation.operands[0].type) is not None:
        axis = operation.attributes["axis"]
        operation.attributes["axis"] = ir.IntegerAttr.get(axis.type, 1 - axis.value)


def _turn_broadcast(operation: Any) -> None:
    dimensions = list(ir.DenseI64ArrayAttr(operation.attributes["dimensions"]))
    if _shape(operation.results[0].type) is not None and len(dimensions) == 1:
        operation.attributes["dimensions"] = ir.DenseI64ArrayAttr.get([1 - dimensions[0]])


def _turn_expansion(operation: Any) -> None:
    sizes = list(ir.DenseI64ArrayAttr(operation.attributes["static_output_shape"]))
    if len(sizes) == 2:
        operation.attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(sizes[::-1])


_TURNS: dict[str, Callable[[Any], None]] = {
    "arith.constant": _turn_constant,
    "linalg.broadcast": _turn_broadcast,
    "tensor.expand_shape": _turn_expansion,
    Load.OPERATION_NAME: _turn_access,
    Store.OPERATION_NAME: _turn_access,
    Reduce.OPERATION_NAME: _turn_reduce,
}
