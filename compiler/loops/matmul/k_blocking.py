"""K blocking: a loop's dots are multiplied several iterations at a time.

If a loop only adds a dot to a carried tensor, nothing but the next iteration's dot reads the sum. Each iteration then
packs its operands next to those of earlier iterations. The iteration that fills the `Panel`, or is the last one,
multiplies all of them, so each sum is read and written once per panel instead of once per iteration. Operands are still
read in their own iteration. An A whose rows lie in memory that the loop does not write is not packed at all. Products
are added in the same order of K, so results are bitwise equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from triton_porting_kit.compiler.dialect.operations import Load
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Def, Operation, walk
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul import scaled_factors
from triton_porting_kit.compiler.loops.matmul.epilogues import epilogue
from triton_porting_kit.compiler.loops.matmul.factors import Rows, Strips
from triton_porting_kit.compiler.loops.matmul.packed_cache import packed_cache
from triton_porting_kit.compiler.loops.matmul.panels import Panel, Panels, State
from triton_porting_kit.compiler.loops.matmul.products import product_for
from triton_porting_kit.compiler.loops.matmul.software_prefetch import advance
from triton_porting_kit.compiler.loops.state import EarlyStores, is_fence
from triton_porting_kit.compiler.loops.tiles.tensors import Splat


def plan(lowering: Lowering, loop: Operation) -> list[Panel]:
    """Create panels for the loop's dots that can wait, and register them with `lowering`.

    Work-items share operands in local memory, which has no room for several iterations.
    """
    if lowering.work_items > 1:
        return []
    return [
        panel
        for dot in loop.regions[0].operations
        if _can_wait(dot) and (panel := _panel(lowering, loop, dot))
    ]


def filled_late(panels: Sequence[Panel]) -> dict[int, Panel]:
    """The panels whose sums are zero only if no iteration has run, by their index among the loop's results."""
    return {panel.place: panel for panel in panels if panel.from_zero}


def begin(
    lowering: Lowering,
    panels: Sequence[Panel],
    carried: Sequence[Value],
    index: Value,
    stop: Value,
    step: Value,
) -> None:
    """Begin the iteration at `index`. `carried` holds the state of each panel."""
    if not panels:
        return
    builder = lowering.builder
    # `index` is below `stop`, so the unsigned difference is exact however far apart they are.
    last = builder.compare("ule", builder.sub(stop, index), step)
    _resume(panels, carried)
    for panel in panels:
        panel.last = last


def end(lowering: Lowering, panels: Sequence[Panel], carried: Sequence[Value]) -> None:
    """Finish the loop. `carried` holds the final state of each panel."""
    _resume(panels, carried)
    for panel in panels:
        if panel.epilogue is not None:
            lowering.part(EarlyStores)[panel.epilogue.store] = panel.state.stored


def _resume(panels: Sequence[Panel], carried: Sequence[Value]) -> None:
    """Set the state of the panels from their loop-carried values, which follow one another in order."""
    remaining = iter(carried)
    for panel in panels:
        panel.state = State(*islice(remaining, len(State._fields)))


def _can_wait(dot: Operation) -> bool:
    """Whether a dot adds to a carried tensor that nothing else reads before the loop ends."""
    if dot.name != "linalg.matmul":
        return False
    *factors, total = dot.operands
    body, result = dot.block, dot.results[0]
    terminator = body.operations[-1]
    return (
        total.type.element not in types.NARROW_FLOATS  # these are rounded in every iteration
        and total in body.arguments[1:]
        and all(factor.block is body and factor not in body.arguments for factor in factors)
        and total.users == [dot]
        and result.users == [terminator]
        and terminator.operands[body.arguments.index(total) - 1] is result
    )


def _panel(lowering: Lowering, loop: Operation, dot: Operation) -> Panel | None:
    """The panel for a dot's operands; None if it would gain nothing."""
    builder, target = lowering.builder, lowering.target
    a, b, c = (operand.type for operand in dot.operands)
    (m, k), (_, n) = a.shape or (), b.shape or ()
    product = product_for(target, *scaled_factors.elements(dot), (m, n, k), c.element)
    block = product.block(target, m, n, c.element)
    left = scaled_factors.definition(dot)
    in_place = _lies_in_rows(lowering, left, product.element, k)
    rows = 0 if in_place and _is_never_masked(left) else m  # rows of A that may have to be packed
    depth, size = k // product.count, types.byte_size(product.unit)
    caches = target.caches
    most = min(target.strip_bytes // block.strip, caches.panel_bytes // max(rows, n))
    iterations = max(1, most // (size * depth))
    kept, room = None, None
    if (owner := dot.operands[1].owner) is not None and Load.isa(owner) and not is_fence(owner):
        kept, room = packed_cache(lowering, owner, iterations, iterations * depth * n * size) or (None, None)
    if iterations < 2 and not in_place and kept is None:
        # As without a panel, each iteration would pack both operands, and read and write the sums.
        return None
    pitch = product.left_pitch(iterations * depth)
    packed = lowering.scratch.allocate((rows, pitch), product.unit)
    if room is None:
        room = lowering.scratch.allocate((iterations * depth, n), product.unit).pointer
    excess = None
    if product.excess is not None:
        room_of_rows = iterations if kept is None else kept.panels * iterations
        bytes_of_rows = room_of_rows * n * types.byte_size(product.unit)
        excess = lowering.scratch.keep(bytes_of_rows)
    place = dot.block.arguments.index(dot.operands[2]) - 1
    initial = lowering.tensor(loop.operands[3 + place])
    from_zero = isinstance(initial, Splat) and initial.value.constant == 0
    state = State.at_first(builder, begun=builder.constant(not from_zero, "i1"))
    panel = Panel(
        product,
        block,
        iterations,
        left=Rows((m, iterations * depth), product.unit, packed.pointer, pitch),
        right=Strips((iterations * depth, n), product.unit, room, block.strip, iterations * depth),
        in_place=in_place,
        excess=excess,
        kept=kept,
        epilogue=None
        if kept is None
        or lowering.checks is not None  # in checked mode the store is checked at its own place
        else epilogue(lowering, loop, dot, loop.results[place], block, kept.writes, flushed=product.flushes),
        place=place,
        from_zero=from_zero,
        state=state,
        last=builder.constant(0, "i1"),
        following=state,
    )
    lowering.part(Panels)[dot] = panel
    return panel


def _is_never_masked(definition: Def) -> bool:
    """Whether a load in the loop has no bounds and does not wrap around."""
    assert definition.owner is not None
    load = Load(definition.owner)
    return not load.low and not load.wrap_dims


def _lies_in_rows(lowering: Lowering, definition: Def, element: str, k: int) -> bool:
    """Whether iterations load consecutive parts of the same rows, `k` elements each, and the loop writes no memory."""
    owner, body = definition.owner, definition.block
    load = Load.dyn_cast(owner)
    if load is None or definition.type.element != element:
        return False
    by = advance(lowering, load.offset)
    fixed = (load.base, *load.strides, *load.wrap_start, *load.wrap_size)
    return (
        load.mask is None
        # A tensor computed in some iterations only must not be needed by the others.
        and not (load.other is not None and load.other.type.is_tensor)
        and all(value.block is not body for value in fixed)
        and lowering.scalar(load.strides[1]).constant == 1
        and by is not None
        and by.constant == k
        and not any(is_fence(operation) for operation in walk(body))
    )
