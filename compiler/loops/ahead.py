"""Fetching what the next trips of a loop will pack, while the present ones are multiplied.

Packing does little but wait for memory, and multiplying does not need any: so the multiplication of one panel asks for
the rows of B that the next one packs, a line at a time, into the second cache. The addresses are those of a loop whose
trips go through B row after row; where it does otherwise, or ends, what is fetched goes unused, and nothing faults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from triton_porting_kit.compiler.loops import element_types as types
from triton_porting_kit.compiler.loops import lane_memory
from triton_porting_kit.compiler.loops.access import Load
from triton_porting_kit.compiler.loops.builder import Value
from triton_porting_kit.compiler.loops.evaluation import Evaluation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.program import Def, Operation
from triton_porting_kit.compiler.loops.tensors import Point, Tensor

LINE = 64
"""Bytes that one fetch brings."""

MOST = 4
"""At most so many lines are fetched in one step: with few rows of sums, multiplying takes no time to speak of."""

Fetch: TypeAlias = Callable[[Value, Value, Value], None]
"""Emits one step's share: given the first row and column of a register block, and which step of it this is."""


def advance(lowering: Lowering, definition: Def) -> Value | None:
    """By how much a value that a loop carries is larger in every trip than in the one before; None: not known."""
    body = definition.block
    if definition not in body.arguments[1:]:
        return None
    owner = body.operations[-1].operands[body.arguments.index(definition) - 1].owner
    if owner is None or owner.block is not body or owner.name != "arith.addi":
        return None
    others = [operand for operand in owner.operands if operand is not definition]
    return lowering.scalar(others[0]) if len(others) == 1 and others[0].block is not body else None


def rows_ahead(
    lowering: Lowering,
    dot: Operation,
    b: Tensor,
    *,
    depth: int,
    blocks: int,
    rows: int,
    strip: int,
    steps: int,
    known: Value,
    packed: Value,
) -> Fetch | None:
    """What fetches the `depth` rows of the right factor `b` of a dot that follow those of this trip.

    Each strip of `strip` columns is multiplied in `blocks` blocks of `rows` rows, of `steps` steps each. Where this
    trip's rows were `known` to be `packed`, so are the next ones: nothing is fetched but what is there.
    """
    owner = dot.operands[1].owner
    if not lowering.target.triple.startswith("x86_64") or not isinstance(b, Load) or owner is None:
        return None
    access = b.access
    by = advance(lowering, owner.segments()[1][0])
    if by is None or not access.is_contiguous(1) or any(s.block is dot.block for s in owner.segments()[2]):
        return None
    builder, element = lowering.builder, types.storage(b.element)
    lines = max(1, strip * types.byte_size(b.element) // LINE)
    share = -(-depth // blocks)
    each = min(MOST, -(-share * lines // steps))
    corner = Evaluation(builder, frozenset({access}), {})
    pitch = builder.select(known, builder.i64(0), access.strides[0])

    def fetch(row: Value, column: Value, step: Value) -> None:
        start = access.pointer(corner, Point((builder.i64(0), column), -1, 1))
        start = builder.select(known, packed, builder.address(start, [by], element))
        block = builder.binary("arith.divui", row, builder.i64(rows))
        start = builder.address(start, [builder.mul(builder.mul(block, builder.i64(share)), pitch)], element)
        for index in range(each):
            count = builder.add(builder.mul(step, builder.i64(each)), builder.i64(index))
            down, across = (
                builder.binary(f"arith.{op}", count, builder.i64(lines)) for op in ("divui", "remui")
            )
            place = builder.address(start, [builder.mul(down, pitch)], element)
            place = builder.address(place, [builder.mul(across, builder.i64(LINE))], "i8")
            lane_memory.prefetch(builder, place, lane_memory.SECOND_CACHE)

    return fetch
