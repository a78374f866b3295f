"""Stores and scatters as parts of a loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from triton_porting_kit.compiler.dialect.operations import Gather as GatherOp
from triton_porting_kit.compiler.dialect.operations import Scatter, Store, StructuredAccess
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles.access import Access
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.explicit import scatter_explicit
from triton_porting_kit.compiler.loops.tiles.tensors import Point, Tensor


class Write(NamedTuple):
    """A store or scatter of a tile."""

    operation: Operation
    base: Value
    value: Tensor
    mask: Tensor | None
    access: Access | None
    """Of a store."""
    offsets: Tensor | None
    """Of a scatter."""
    unit: str
    """The type in whose size offsets count."""

    @property
    def shape(self) -> tuple[int, ...]:
        if self.access is not None:
            return self.access.shape
        return self.value.shape if self.offsets is None else self.offsets.shape

    @property
    def inputs(self) -> list[Tensor]:
        """What its loop evaluates, the stored value first."""
        return [tensor for tensor in (self.value, self.offsets, self.mask) if tensor is not None]

    @property
    def place(self) -> tuple[object, ...]:
        """Where in its array each element goes. For two equal ones, that is the same."""
        bytes_each = types.byte_size(self.value.element)
        if self.access is None:
            return self.offsets, self.mask, self.unit, bytes_each
        wraps = tuple(self.access.wraps.items())
        return self.access.offset, tuple(self.access.strides), self.access.box, wraps, self.mask, bytes_each

    def emit(self, evaluation: Evaluation, point: Point, value: Value) -> None:
        """Write `value`, the elements at `point`."""
        if self.access is not None:
            self.access.write(evaluation, point, value)
        else:
            assert self.offsets is not None
            scatter_explicit(evaluation, point, self.base, self.offsets, value, self.mask, self.unit)


def inputs_of(writes: Iterable[Write]) -> list[Tensor]:
    """What a loop for all of `writes` evaluates."""
    return list(dict.fromkeys(tensor for write in writes for tensor in write.inputs))


def write_of(lowering: Lowering, operation: Operation) -> Write:
    """The write of a ``tpk.store`` or ``tpk.scatter``, whose operands are known."""
    if Store.isa(operation):
        op = Store(operation)
        access = access_of(lowering, op)
        return Write(operation, access.base, lowering.tensor(op.value), access.mask, access, None, "")
    scatter = Scatter(operation)
    base, offsets, mask, unit = explicit_of(lowering, scatter)
    return Write(operation, base, lowering.tensor(scatter.value), mask, None, offsets, unit)


def access_of(lowering: Lowering, op: StructuredAccess[Def]) -> Access:
    """The access of a ``tpk.load`` or ``tpk.store``."""
    strides, low, high, wrap_start, wrap_size = (
        [lowering.scalar(value) for value in group]
        for group in (op.strides, op.low, op.high, op.wrap_start, op.wrap_size)
    )
    mask = op.mask
    return Access(
        op.tile.type.shape or (),
        op.tile.type.element,
        lowering.scalar(op.base),
        lowering.scalar(op.offset),
        strides,
        low,
        high,
        dict(zip(op.wrap_dims, zip(wrap_start, wrap_size, strict=True), strict=True)),
        None if mask is None else lowering.tensor(mask),
        None if mask is None else _exempt(lowering, mask),
        lowering.target.shuffles and lowering.target.masks_gathers,
    )


def _exempt(lowering: Lowering, mask: Def) -> Value | None:
    """The i1 of a mask `splat(i1) | ...`. If it is set, the rest of the mask need not be computed."""
    owner = mask.owner
    if owner is None or owner.name != "arith.ori":
        return None
    splats = (operand.owner for operand in owner.operands)
    found = [splat.operands[0] for splat in splats if splat is not None and splat.name == "tensor.splat"]
    return lowering.scalar(found[0]) if found else None


def explicit_of(
    lowering: Lowering, op: GatherOp[Def] | Scatter[Def]
) -> tuple[Value, Tensor, Tensor | None, str]:
    """Base, offsets, mask, and the type in whose size offsets count, of a ``tpk.gather`` or ``tpk.scatter``."""
    unit = "i8" if op.byte_offsets else types.storage(op.tile.type.element)
    mask = None if op.mask is None else lowering.tensor(op.mask)
    return lowering.scalar(op.base), lowering.tensor(op.offsets), mask, unit
