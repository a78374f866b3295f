"""Right operands of a loop's products, kept in their packed form for later programs.

Attention multiplies by other keys and values in each iteration, and by the same ones in each program of a head. The
iteration's number is that of a panel of a `PackedCache`.
"""

from __future__ import annotations

from typing import NamedTuple

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.factors import Strips
from triton_porting_kit.compiler.loops.matmul.packed_cache import packed_cache
from triton_porting_kit.compiler.loops.matmul.products import Product
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking
from triton_porting_kit.compiler.loops.memory.growth import wide
from triton_porting_kit.compiler.loops.state import is_fence
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.tensors import Reindexed, Tensor


class Kept(NamedTuple):
    """A packed right operand, what reads it, and i1: whether an earlier program packed it."""

    place: Strips
    load: Load
    known: Value


def kept_right(
    lowering: Lowering, operation: Operation, product: Product, block: Blocking, b: Tensor
) -> Kept | None:
    """B, which a dot multiplies by, packed in this iteration or by an earlier program. None if that may not be kept.

    It may be what is read by a load in the body of a loop, transposed or not.
    """
    loop = operation.block.parent
    load = _loaded(b)
    if loop is None or loop.name != "scf.for" or load is None or lowering.work_items > 1:
        return None
    owner = load.definition.owner if load.definition is not None else None
    if owner is None or owner.block is not operation.block or is_fence(owner):
        return None
    k, n = b.shape
    depth = k // product.count
    size = depth * n * types.byte_size(product.unit)
    dots = sum(other.name == operation.name for other in operation.block.operations)
    found = packed_cache(lowering, owner, 1, size, shared_by=dots)
    if found is None:
        return None
    kept, first = found
    builder = lowering.builder
    last = builder.i64(kept.panels - 1)
    number = builder.binary("arith.minui", iteration_number(lowering, loop), last)
    pointer = builder.address(first, [builder.mul(number, builder.i64(size))], "i8")
    place = Strips((depth, n), product.unit, pointer, block.packed_strip, depth)

    def pack() -> None:
        product.pack_right(lowering, operation, b, place)

    with load.place():
        known = kept.pack(lowering, load.access, number, builder.i64(0), pack)
    return Kept(place, load, known)


def _loaded(tensor: Tensor) -> Load | None:
    """The load of a matrix that `tensor` is, or is the transpose of."""
    while isinstance(tensor, Reindexed) and tensor.buffer is None and len(tensor.operands[0].shape) == 2:
        tensor = tensor.operands[0]
    whole = isinstance(tensor, Load) and tensor.buffer is None and len(tensor.shape) == 2
    return tensor if whole and isinstance(tensor, Load) else None


def iteration_number(lowering: Lowering, loop: Operation) -> Value:
    """The number of the loop's iteration, i64."""
    builder = lowering.builder
    index = lowering.scalar(loop.regions[0].arguments[0])
    start, step = (lowering.scalar(loop.operands[i]) for i in (0, 2))
    done = builder.sub(*(wide(builder, value) for value in (index, start)))
    return builder.binary("arith.divui", done, wide(builder, step))
