"""Moves the next iteration's tiles while this one is computed.

A loop's fetch is a buffer, a transfer into it, and a wait (`ahead`). If the addresses of the next iterations can be
computed at the start of this one, it starts ahead (`pipelining`). What is the same in every iteration is moved once,
before the loop. The last product of an iteration may be computed beside the next iteration (`deferring`).

A load may not pass a store that is before it. So a loop that loads arrays which it stores to, or waits for other
programs, keeps its order; but not the loops over a core's programs and over the pieces of a tile, which may run in any
order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from triton_porting_kit.chips.description import ChipDescription
from triton_porting_kit.compiler.dialect.npu import NpuBuffer, NpuElementLoad, NpuRead
from triton_porting_kit.toolchain.mlir import ir

from .ahead import Fetch, early_products, fetches, writes_global
from .arrays import SYNCHRONISES, apart
from .beginning import begin_early
from .deferring import defer
from .editing import SLT, Editor, functions, nested
from .orders import order
from .pipelining import Begin, Stage, beyond, pipeline, started
from .programs import UNORDERED
from .rotating import rotate, rotates
from .slices import PURE, Slice, copy


class Level(IntEnum):
    """How much memory loops may take to overlap."""

    TRANSFERS = 0
    """Two copies of what is moved."""
    SUMS = 1
    """Two copies of sums, so that products start an iteration early; one of what is moved for the matrix unit."""
    BOTH = 2
    """Two copies of sums and of what is moved."""
    DEEP = 3
    """Two copies of sums, and of what is moved for products that start early. Of what else is moved, as many as there
    are stages; of what programs move, at least three.
    """


PROGRAMS_AHEAD = 2
"""How many programs early a transfer starts: the first of them hides the latency of memory, the second its own time."""
SMALL_BYTES, SMALL_AHEAD = 1 << 12, 4
"""If no transfer has more bytes than this, programs are so short that it takes more of them."""


def overlap(module: Any, chip: ChipDescription, level: Level = Level.DEEP, stages: int = 2) -> bool:
    """Rewrite the loops of a module of the stage ``tiles``, in MLIR's bindings, in place; inner loops first. `stages`:
    how many iterations of a kernel's loop are under way at one time.

    Returns whether a lower level would take less memory.
    """
    less = False
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            loops = [op for op in nested(function.regions[0].blocks[0]) if op.name == "scf.for"]
            numbers: list[tuple[Any, range]] = []
            for loop in reversed(loops):
                less |= _overlap(editor, loop, level, stages, numbers)
            _erase_unused(function.regions[0].blocks[0])
    return less


def _erase_unused(block: Any) -> None:
    """Erase the addresses that are computed for another iteration now, and what only they were computed from. What says
    which program runs stays.
    """
    for operation in reversed(list(nested(block))):
        if operation.name not in PURE or any(True for result in operation.results for _ in result.uses):
            continue
        if "current" not in operation.attributes:
            operation.erase()


def _overlap(editor: Editor, loop: Any, level: Level, stages: int, numbers: list[tuple[Any, range]]) -> bool:
    """`numbers` has the bodies of loops, and which of their carried values are the numbers of copies."""
    body = [(op.name, op) for op in nested(loop.regions[0].blocks[0])]
    if any(
        name in SYNCHRONISES or (name == NpuElementLoad.OPERATION_NAME and NpuElementLoad(op).volatile)
        for name, op in body
    ):
        return False
    free = None
    if UNORDERED not in loop.attributes and any(writes_global(op) for _, op in body):
        free = apart(editor, loop)
        if free is None:
            return False
    for name, operation in body:
        if name == NpuRead.OPERATION_NAME and not any(True for _ in operation.results[0].uses):
            operation.erase()
    found = [(fetch, piece) for fetch in fetches(loop) if (piece := fetch.slice(loop)).possible]
    for fetch, piece in found:
        if not piece.varies and free is None:
            _hoist(editor, loop, fetch, piece)
    varying = [fetch for fetch, piece in found if piece.varies]
    if free is not None:
        return _ahead_of_stores(editor, loop, varying, free, level, stages)
    ahead = varying
    if level > Level.TRANSFERS:
        feeding = level is Level.DEEP and UNORDERED not in loop.attributes
        ahead = early_products(editor, loop, varying, feeding=feeding)
    early, rotated = any(fetch.inner for fetch in ahead), 0
    if early and level is Level.SUMS:
        moved = [fetch for fetch in ahead if fetch.for_matrix and not fetch.inner]
        for fetch in moved:
            _at_top(editor, loop, fetch)
        ahead = [fetch for fetch in ahead if fetch not in moved]
    if ahead:
        # First what starts products, then what feeds them: the others may wait for a product.
        ahead.sort(key=lambda fetch: (not fetch.inner, not fetch.feeds))
        ahead_of = _programs_ahead(ahead) if UNORDERED in loop.attributes else stages - 1
        late = early or UNORDERED in loop.attributes  # the matrix unit needs what is moved for it late enough
        depths = [
            2
            if fetch.feeds
            else 1
            if level is not Level.DEEP or fetch.inner or fetch.branches or (late and fetch.for_matrix)
            else ahead_of
            for fetch in ahead
        ]
        stages_ahead = [Stage(f, f.slice(loop), d) for f, d in zip(ahead, depths, strict=True)]
        rotated = depths[0] if _rotates(loop, stages_ahead) else 0
        loop, which = pipeline(editor, loop, stages_ahead, rotated=rotated > 0)
        numbers.append((loop.regions[0].blocks[0], which))
        early |= max(depths) > 1
    loop = defer(editor, loop)
    if UNORDERED in loop.attributes:
        loop = begin_early(editor, loop, numbers)
    if rotated:
        editor.before(loop)
        rotate(editor, loop, beyond(editor, loop.operands[0], loop.operands[2], -rotated))
    return early


def _rotates(loop: Any, stages: list[Stage]) -> bool:
    """Whether the first transfers of a loop can start in it: all as many programs ahead, without products, and from
    the number of the program alone.
    """
    if UNORDERED not in loop.attributes or not rotates(loop):
        return False
    return len({stage.depth for stage in stages}) == 1 and not any(
        stage.fetch.inner or stage.piece.carried for stage in stages
    )


def _programs_ahead(fetches: list[Fetch]) -> int:
    """How many programs early transfers start."""
    small = all(NpuBuffer(fetch.buffer).bytes <= SMALL_BYTES for fetch in fetches)
    return SMALL_AHEAD if small else PROGRAMS_AHEAD


def _ahead_of_stores(
    editor: Editor, loop: Any, fetches: list[Fetch], free: Any, level: Level, stages: int
) -> bool:
    """Overlap a loop that stores to arrays which it does not load, if `free` holds."""
    depth = stages - 1 if level is Level.DEEP else 1
    if fetches:
        pipeline(editor, loop, [Stage(fetch, fetch.slice(loop), depth) for fetch in fetches], free)
    return bool(fetches) and depth > 1


def _hoist(editor: Editor, loop: Any, fetch: Fetch, piece: Slice) -> None:
    """Move what every iteration would move again once, before the loop, if there is an iteration."""
    lower, upper = list(loop.operands)[:2]
    editor.before(loop)
    some = editor.compare(SLT, lower, upper)
    fetch.buffer.move_before(loop)
    (token,) = started(editor, some, [Begin(fetch.starts, piece, lambda: piece.copied({}, editor.at))])
    editor.wait(token, fetch.unit)
    fetch.wait.erase()
    for start in reversed(fetch.starts):
        start.erase()


def _at_top(editor: Editor, loop: Any, fetch: Fetch) -> None:
    """Start what is moved for the matrix unit at the start of its own iteration, and let that unit wait for it."""
    fetch.buffer.move_before(loop)
    top = ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0])
    (start,) = fetch.starts
    made = copy(start, fetch.slice(loop).copied({}, top), top)
    start.results[0].replace_all_uses_with(made.results[0])
    start.erase()
    order(editor, fetch)
