"""K blocking: a loop's dots are multiplied several iterations at a time.

If a loop only adds a dot to a carried tensor, nothing but the next iteration's dot reads the sum. Each iteration then
packs its operands next to those of earlier iterations. The iteration that fills the `Panel`, or is the last one,
multiplies all of them, so each sum is read and written once per panel instead of once per iteration. Operands are still
read in their own iteration. An A whose rows lie in memory that the loop does not write is not packed at all. Products
are added in the same order of K, so results are bitwise equal.

Where loops do nothing with the sums but hand them to the next inner one, as in a convolution over the places of its
filter, the iterations of all of them wait together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise

from triton_porting_kit.compiler.dialect.operations import Load
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Def, Operation, walk
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul import row_tables, scaled_factors
from triton_porting_kit.compiler.loops.matmul.epilogues import epilogue
from triton_porting_kit.compiler.loops.matmul.factors import Rows, Strips
from triton_porting_kit.compiler.loops.matmul.instructions import product_for
from triton_porting_kit.compiler.loops.matmul.packed_cache import packed_cache
from triton_porting_kit.compiler.loops.matmul.panels import Panel, Panels, State
from triton_porting_kit.compiler.loops.matmul.products import Elements, Product
from triton_porting_kit.compiler.loops.matmul.row_tables import RowTable
from triton_porting_kit.compiler.loops.memory.growth import FOR, advance, is_inside
from triton_porting_kit.compiler.loops.state import EarlyStores, is_fence
from triton_porting_kit.compiler.loops.tiles.tensors import Splat

MOST_STRIPS = 2
"""Most strips of B for each of which a block of rows of A is converted again."""


class Through(dict[Operation, list[Panel]]):
    """The panels of dots in inner loops, by each loop that their sums go through, but for the outermost one."""


def plan(lowering: Lowering, loop: Operation) -> list[Panel]:
    """Create panels for the loop's dots that can wait, and register them with `lowering`.

    Those that wait in loops around this one, too, are there already. Work-items share operands in local memory, which
    has no room for several iterations.
    """
    if lowering.work_items > 1:
        return []
    panels = []
    for dot in walk(loop.regions[0]):
        if _can_wait(dot) and (loops := _nest(dot))[0] is loop:
            panel = _panel(lowering, loops, dot)
            if panel is None:
                continue
            panels.append(panel)
            for inner in loops[1:]:
                lowering.part(Through).setdefault(inner, []).append(panel)
    return panels


def handed_on(lowering: Lowering, loop: Operation) -> list[Panel]:
    """The panels that wait in loops around this one, too."""
    return lowering.part(Through).get(loop, [])


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
    handed: Sequence[Panel] = (),
) -> None:
    """Begin the iteration at `index`. `carried` holds the state of each panel, and of those that are `handed` on."""
    if not panels and not handed:
        return
    builder = lowering.builder
    # `index` is below `stop`, so the unsigned difference is exact however far apart they are.
    last = builder.compare("ule", builder.sub(stop, index), step)
    _resume([*panels, *handed], carried)
    for panel in panels:
        panel.last = last
    for panel in handed:
        panel.last = builder.logical_and(panel.last, last)


def end(
    lowering: Lowering, panels: Sequence[Panel], carried: Sequence[Value], handed: Sequence[Panel] = ()
) -> None:
    """Finish the loop. `carried` holds the final state of each panel, and of those that are `handed` on."""
    _resume([*panels, *handed], carried)
    for panel in handed:
        panel.following = panel.state
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
        body.parent is not None
        and body.parent.name == FOR
        and total.type.element not in types.NARROW_FLOATS  # these are rounded in every iteration
        and total in body.arguments[1:]
        and all(factor.block is body and factor not in body.arguments for factor in factors)
        and total.users == [dot]
        and result.users == [terminator]
        and terminator.operands[body.arguments.index(total) - 1] is result
    )


def _nest(dot: Operation) -> list[Operation]:
    """The loops, the outermost first, that do nothing with the sums of a dot but hand them to the next inner one.

    Bounds do not change in the nest, so the last iteration of all is known. None of the loops writes memory, since
    operands may be read late.
    """
    loop = dot.block.parent
    assert loop is not None
    loops, (a, _, total) = [loop], dot.operands
    if Load.isa(a.owner):
        return loops  # it may be read in place only while the loop goes along its rows
    place = dot.block.arguments.index(total) - 1
    while (around := _around(loops, place)) is not None:
        outer, place = around
        loops = [outer, *loops]
    return loops


def _around(loops: Sequence[Operation], place: int) -> tuple[Operation, int] | None:
    """The loop around the first one that only hands on what this carries at a `place`, and at which place it does."""
    inner, body = loops[0], loops[0].block
    outer, carried, result = body.parent, inner.operands[3 + place], inner.results[place]
    terminator = body.operations[-1]
    if (
        outer is None
        or outer.name != FOR
        or carried not in body.arguments[1:]
        or carried.users != [inner]
        or inner.operands.count(carried) > 1
        or result.users != [terminator]
        or any(is_inside(bound, outer) for loop in loops for bound in loop.operands[:3])
        or any(is_fence(operation) for operation in walk(body))
    ):
        return None
    index = body.arguments.index(carried) - 1
    return (outer, index) if terminator.operands[index] is result else None


def _panel(lowering: Lowering, loops: Sequence[Operation], dot: Operation) -> Panel | None:
    """The panel for a dot's operands, which wait in all these `loops`; None if it would gain nothing."""
    builder, target = lowering.builder, lowering.target
    a, b, c = (operand.type for operand in dot.operands)
    (m, k), (_, n) = a.shape or (), b.shape or ()
    product = product_for(target, *scaled_factors.elements(dot), (m, n, k), c.element)
    block = product.block(target, m, n, c.element, several=_is_alone(dot))
    raw = _raw(lowering, product, a.element, -(-n // block.strip))
    left = scaled_factors.definition(dot)
    in_place = _lies_in_rows(lowering, left, raw or product.element, k)
    table = row_tables.suits(lowering, dot.operands[0], product)
    rows = 0 if in_place and _is_never_masked(left) else m  # rows of A that may have to be packed
    depth, size = k // product.count, types.byte_size(product.unit)
    caches = target.caches
    most = min(target.strip_bytes(product.unit) // block.strip, caches.panel_bytes // max(rows, n))
    iterations = max(1, most // (size * depth))
    kept, room = None, None
    if (owner := dot.operands[1].owner) is not None and Load.isa(owner) and not is_fence(owner):
        kept, room = packed_cache(lowering, owner, iterations, iterations * depth * n * size) or (None, None)
    if iterations < 2 and not in_place and not table and kept is None:
        # As without a panel, each iteration would pack both operands, and read and write the sums.
        return None
    held = raw if raw and in_place else product.unit
    pitch = product.left_pitch(iterations * depth)
    packed = lowering.scratch.allocate((rows, pitch), held)
    if room is None:
        room = lowering.scratch.allocate((iterations * depth, n), product.unit).pointer
    excess = None
    if product.excess is not None:
        room_of_rows = iterations if kept is None else kept.panels * iterations
        bytes_of_rows = room_of_rows * n * types.byte_size(product.unit)
        excess = lowering.scratch.keep(bytes_of_rows)
    loop, place = loops[0], dot.block.arguments.index(dot.operands[2]) - 1
    for around, inner in reversed(list(pairwise(loops))):
        place = around.regions[0].arguments.index(inner.operands[3 + place]) - 1
    initial = lowering.tensor(loop.operands[3 + place])
    from_zero = isinstance(initial, Splat) and initial.value.constant == 0
    state = State.at_first(builder, begun=builder.constant(not from_zero, "i1"))
    panel = Panel(
        product,
        block,
        iterations,
        left=Rows((m, iterations * depth), held, packed.pointer, pitch),
        right=Strips((iterations * depth, n), product.unit, room, block.packed_strip, iterations * depth),
        in_place=in_place,
        table=RowTable.of(lowering, product, block.rows, iterations, m, k) if table else None,
        excess=excess,
        kept=kept,
        epilogue=None
        if kept is None
        or len(loops) > 1
        or table  # rows of A may lie where the store writes
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


def _is_alone(dot: Operation) -> bool:
    """Whether a dot is the only one in its loop."""
    return sum(other.name == dot.name for other in dot.block.operations) == 1


def _raw(lowering: Lowering, product: Product, element: str, strips: int) -> str:
    """The type of A if its rows are converted where they lie, a block at a time for each strip of B; else empty.

    That takes less time than to write all of them to memory that is in L2, as long as there are few strips.
    """
    halves = element == "bf16" or (element == "f16" and lowering.target.converts_f16)
    wide = isinstance(product, Elements) and product.unit == "f32"
    return element if halves and wide and strips <= MOST_STRIPS else ""


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
    by = advance(lowering, load.offset, body)
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
