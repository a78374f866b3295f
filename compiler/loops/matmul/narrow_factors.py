"""Factors of products that a reduction computes anyway: written in the narrow type that the product reads.

Attention sums the weights in f32 and multiplies by them in bf16. The loop of the sum rounds them, where another one
would read all of them again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from triton_porting_kit.compiler.loops.ir.program import Def, Operation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.instructions import product_for
from triton_porting_kit.compiler.loops.matmul.interleaved import Interleaved
from triton_porting_kit.compiler.loops.tiles.beside import Converted
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Tensor


def narrow_factors(
    lowering: Lowering, reductions: Collection[Operation], held: Mapping[Tensor, Buffer]
) -> dict[Tensor, tuple[Tensor, Converted]]:
    """The factors to hold instead of what these reductions would hold, by that: with the buffer for each.

    That is so where nothing but the rounding to a factor needs a value again.
    """
    found = {}
    for tensor, buffer in held.items():
        rounding = _only_user(tensor.definition, reductions)
        if rounding is None or rounding.name != "arith.truncf":
            continue
        (result,) = rounding.results
        dot = _only_user(result, ())
        if dot is None or dot.name != "linalg.matmul" or dot.operands[0] is not result:
            continue
        a, b, c = (operand.type for operand in dot.operands)
        (m, k), (_, n) = a.shape or (), b.shape or ()
        product = product_for(lowering.target, a.element, b.element, (m, n, k), c.element)
        if not isinstance(product, Interleaved) or product.element != a.element:
            continue
        if not lowering.advance(result):
            continue
        factor = lowering.tensor(result)
        place = Buffer(buffer.shape, a.element, buffer.pointer)
        found[tensor] = factor, Converted(place, product.left(factor), tensor)
    return found


def _only_user(definition: Def | None, beside: Collection[Operation]) -> Operation | None:
    """The only operation that uses a value `beside` those, in the value's own block."""
    if definition is None:
        return None
    users = {user for user in definition.users if user not in beside}
    user = users.pop() if len(users) == 1 else None
    return user if user is not None and user.block is definition.block else None
