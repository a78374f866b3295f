"""Starts what an iteration of a loop fetches in earlier iterations: the buffer gets as many copies as are under way.

The first transfers start before the loop. Each iteration starts one, and waits for its own. Tokens and the number of
the copy are carried by the loop.

Where only the matrix unit reads what is fetched, the core does not wait for it: the units wait for each other
(`tpk.npu_order`). If the core does not touch the sums in the loop either, it waits behind the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from triton_porting_kit.compiler.dialect.npu import (
    NpuBuffer,
    NpuOrder,
)

from .ahead import Fetch
from .editing import SLT, Editor, is_inside, number_of
from .loops import with_carried
from .orders import free_running, let_run, order, units
from .products import MATRIX
from .rings import Ring
from .slices import Slice, copy


@dataclass(frozen=True)
class Stage:
    """A fetch, what it is computed from, and how many iterations it starts ahead."""

    fetch: Fetch
    piece: Slice
    depth: int

    @property
    def under_way(self) -> int:
        """How many commands of later iterations have started when an iteration begins: what feeds the next product is
        that product's from there on.
        """
        return self.depth - self.fetch.feeds

    @property
    def copies(self) -> int:
        """Copies of the buffer."""
        return self.under_way + 1


def pipeline(
    editor: Editor, loop: Any, stages: Sequence[Stage], apart: Any | None = None, *, rotated: bool = False
) -> tuple[Any, range]:
    """Rewrite a loop in place. Returns the new loop, and which of its carried values are the numbers of copies.

    `apart`: an i1 without which nothing starts ahead.

    `rotated`: the first transfers start in the loop, which `rotate` lets begin as many iterations earlier.
    """
    fetches = [stage.fetch for stage in stages]
    free = None if apart is not None else free_running(loop, fetches)
    given = [] if apart is None else [apart]
    plain = [fetch for fetch in fetches if fetch.for_matrix and not fetch.inner and not fetch.feeds]
    orders = plain if free is None and apart is None else []
    editor.before(loop)
    zero = editor.constant(0)
    for stage in stages:
        _make_copies(editor, loop, stage)
    if rotated:
        first = [zero for stage in stages for _ in range(stage.under_way)]
    else:
        begun = _begun(editor, loop, max(stage.depth for stage in stages))
        begun = [(index, editor.both([some, *given])) for index, some in begun]
        copied = Copies()
        first = _first(editor, loop, stages, begun, copied)
    counts = sorted({stage.copies for stage in stages})
    numbers = [Ring(count, rotated, _unit(stages, count)) for count in counts]
    block = loop.regions[0].blocks[0]
    counting = Count(block.arguments[0], loop.operands[1], loop.operands[2])

    def following(added: Any) -> list[Any]:
        """Start later iterations' transfers at the top, and use the copies of this one."""
        given_tokens = iter(added)
        tokens = [list(islice(given_tokens, stage.under_way)) for stage in stages]
        editor.before(block.operations[0].operation)
        given_numbers = iter(added[len(first) :])
        rings = {ring.count: ring.around(editor, given_numbers) for ring in numbers}
        steps = {ring.count: ring.unit for ring in numbers}
        if free is not None:
            for unit in sorted({unit for fetch in fetches for unit in fetch.channels}):
                editor.create(NpuOrder, [], units(unit, MATRIX), token=added[-1])

        def pair(stage: Stage) -> list[Any]:
            """The copy that is used in this iteration, and that which is filled for a later one."""
            count = stage.copies
            pair = rings[count][:2]
            used = reversed(pair) if stage.fetch.feeds else pair  # by the next iteration's product
            return [_copy_of(editor, stage.fetch.buffer, n, steps[count]) for n in used]

        ahead = _start_later(editor, stages, tokens, pair, counting, apart)
        ahead += [value for count in counts for value in rings[count][2]]
        return ahead if free is None else [*ahead, free.results[0]]

    begin = [editor.constant(number) for ring in numbers for number in ring.first]
    carried = len(loop.results) + len(first)
    made = with_carried(loop, [*first, *begin, *([] if free is None else [zero])], following)
    for fetch in orders:
        order(editor, fetch)
    if free is not None:
        let_run(editor, made, fetches)
    return made, range(carried, carried + len(begin))


def _begun(editor: Editor, loop: Any, count: int) -> list[tuple[Any, Any]]:
    """The induction variable of the first iterations, and whether there is such an iteration."""
    lower, upper, step = list(loop.operands)[:3]
    found = [(lower, editor.compare(SLT, lower, upper))]
    for depth in range(1, count):
        ahead = editor.value("arith.addi", [found[-1][0], step], lower.type)
        found.append((ahead, later(editor, Count(lower, upper, step), depth)))
    return found


class Copies:
    """What has been computed for other iterations, at places that come before all that are asked for later."""

    def __init__(self) -> None:
        self._known: defaultdict[int, dict[Any, Any]] = defaultdict(dict)

    def of(self, piece: Slice) -> defaultdict[int, dict[Any, Any]]:
        """The copies by the number of iterations ahead. What is computed in a branch is known in that alone."""
        if not piece.guarded:
            return self._known
        return defaultdict(dict, {number: dict(values) for number, values in self._known.items()})


def _start_later(
    editor: Editor,
    stages: Sequence[Stage],
    tokens: Sequence[list[Any]],
    pair: Callable[[Stage], list[Any]],
    counting: Count,
    apart: Any | None,
) -> list[Any]:
    """Start the transfers of later iterations before the editor's place, and let the body use the copies of this one.
    `tokens` are those of the transfers under way. Returns the next ones, stage by stage.
    """
    block, top, copied = counting.own.owner, editor.at.ref_operation, Copies()
    conditions = [apart] if apart is not None else []
    depths = dict.fromkeys(stage.depth for stage in stages)
    more = {depth: editor.both([later(editor, counting, depth), *conditions]) for depth in depths}
    results = [list(of_stage[1:]) for of_stage in tokens]
    fed: dict[Any, Any] = {}  # what has been moved for the next iteration's product, and its token

    def copies(stage: Stage, there: Any) -> dict[Any, Any]:
        found = positions(editor, counting, stage.piece, stage.depth, copied)
        return {**found, **(fed if stage.fetch.inner else {}), stage.fetch.buffer.results[0]: there}

    for stage, (token, *_) in zip(stages, tokens, strict=True):
        if stage.fetch.feeds:
            (start,) = stage.fetch.starts
            fed |= {stage.fetch.buffer.results[0]: pair(stage)[0], start.results[0]: token}
    for together in _together(stages):
        pairs = [pair(stages[each]) for each in together]
        begins = []
        for each, (_, there) in zip(together, pairs, strict=True):
            stage = stages[each]
            starts = [start for start in stage.fetch.starts if not set(start.results) & fed.keys()]
            begins.append(Begin(starts or stage.fetch.starts, stage.piece, partial(copies, stage, there)))
            if stage.fetch.inner:  # which the last product reads
                stage.fetch.wait.move_before(top)
                stage.fetch.wait.operands[0] = tokens[each][0]
        begun = started(editor, more[stages[together[0]].depth], begins)
        for each, (here, there), token in zip(together, pairs, begun, strict=True):
            results[each].append(token)
            own, fetch = tokens[each][0], stages[each].fetch
            if fetch.feeds:
                continue
            ready = own if apart is None else _or_now(editor, apart, fetch, own, here)
            _use_copy(fetch, block, here, there, ready)
            editor.before(top)
    for start in dict.fromkeys(start for stage in stages for start in reversed(stage.fetch.starts)):
        start.erase()
    return [token for of_stage in results for token in of_stage]


def _together(stages: Sequence[Stage]) -> list[list[int]]:
    """The numbers of stages that start in one branch: those that are as many iterations ahead, without products."""
    if any(stage.fetch.inner for stage in stages):
        return [[number] for number in range(len(stages))]
    depths = dict.fromkeys(stage.depth for stage in stages)
    return [[number for number, stage in enumerate(stages) if stage.depth == depth] for depth in depths]


def _first(
    editor: Editor, loop: Any, stages: Sequence[Stage], begun: list[tuple[Any, Any]], copied: Copies
) -> list[Any]:
    """Start the transfers of the first iterations before the loop. Returns their tokens, stage by stage."""
    own, *arguments = loop.regions[0].blocks[0].arguments

    def copies(stage: Stage, number: int) -> dict[Any, Any]:
        known = copied.of(stage.piece)
        for each, (index, _) in enumerate(begun[: number + 1]):
            if each:
                carried = stage.piece.next_carried(known[each - 1], editor.at)
            else:
                carried = dict(zip(arguments, list(loop.operands)[3:], strict=True))
            known[each].update({**carried, own: index})
        found = dict(stage.piece.copied(known[number], editor.at))
        if number:
            found[stage.fetch.buffer.results[0]] = _copy_of(
                editor, stage.fetch.buffer, editor.constant(number)
            )
        return found

    tokens: list[list[Any]] = [[] for _ in stages]
    for number, (_, some) in enumerate(begun):
        mine = [
            each
            for each, stage in enumerate(stages)
            if stage.depth > number and not (stage.fetch.feeds and number == 0)  # then the product's own
        ]
        begins = [
            Begin(stages[each].fetch.starts, stages[each].piece, partial(copies, stages[each], number))
            for each in mine
        ]
        for each, token in zip(mine, started(editor, some, begins), strict=True):
            tokens[each].append(token)
    return [token for each in tokens for token in each]


def _unit(stages: Sequence[Stage], count: int) -> int:
    """The bytes of a copy of the buffers that have so many, if they are the same; 1 otherwise."""
    sizes = {NpuBuffer(stage.fetch.buffer).bytes for stage in stages if stage.copies == count}
    return sizes.pop() if len(sizes) == 1 else 1


def _make_copies(editor: Editor, loop: Any, stage: Stage) -> None:
    """Let the buffer of a fetch have a copy for each iteration that is under way."""
    for fetch in (stage.fetch, *stage.fetch.inner):
        fetch.buffer.move_before(loop)
    editor.copies(stage.fetch.buffer, stage.copies)


@dataclass(frozen=True)
class Count:
    """A loop's induction variable, the end of its range, and its step."""

    own: Any
    upper: Any
    step: Any


def later(editor: Editor, count: Count, depth: int) -> Any:
    """Whether there is an iteration `depth` later. Computed as i64, in which narrower numbers do not overflow."""
    ahead, upper, step = (editor.to_i64(value) for value in (count.own, count.upper, count.step))
    return editor.compare(SLT, beyond(editor, ahead, step, depth), upper)


def beyond(editor: Editor, index: Any, step: Any, count: int) -> Any:
    """An index some steps on, of the index's type."""
    known = number_of(step)
    if known is not None:
        return editor.value("arith.addi", [index, editor.constant(known * count, index.type)], index.type)
    for _ in range(count):
        index = editor.value("arith.addi", [index, step], index.type)
    return index


def positions(
    editor: Editor, count: Count, piece: Slice, depth: int, copied: Copies | None = None
) -> dict[Any, Any]:
    """What a slice is in the iteration `depth` later."""
    known = (copied or Copies()).of(piece)
    if not piece.carried:
        if count.own not in known[depth]:
            known[depth][count.own] = beyond(editor, count.own, count.step, depth)
        return piece.copied(known[depth], editor.at)
    for number in range(depth):
        here = known[number]
        known[number + 1].update(piece.next_carried(here, editor.at))
        if count.own not in known[number + 1]:
            own = here.get(count.own, count.own)
            known[number + 1][count.own] = editor.value("arith.addi", [own, count.step], own.type)
    return piece.copied(known[depth], editor.at)


@dataclass(frozen=True)
class Begin:
    """Commands to start, in order, and what computes their operands for another iteration."""

    starts: Sequence[Any]
    piece: Slice
    copies: Callable[[], dict[Any, Any]]


def started(editor: Editor, condition: Any, begins: Sequence[Begin]) -> Sequence[Any]:
    """Start commands of another iteration, if there is one. Returns each one's last token."""
    ready = [None if begin.piece.guarded else begin.copies() for begin in begins]
    return editor.if_else(
        condition,
        [editor.types.i64] * len(begins),
        lambda: [
            _all(editor, begin.starts, begin.copies() if known is None else known)
            for begin, known in zip(begins, ready, strict=True)
        ],
        lambda: [editor.constant(0)] * len(begins),
    )


def _or_now(editor: Editor, apart: Any, fetch: Fetch, own: Any, here: Any) -> Any:
    """The token of this iteration's transfer, which starts only now if nothing may start ahead."""
    editor.before(fetch.wait)
    (token,) = editor.if_else(
        apart,
        [editor.types.i64],
        lambda: [own],
        lambda: [_all(editor, fetch.starts, {fetch.buffer.results[0]: here})],
    )
    return token


def _all(editor: Editor, starts: Sequence[Any], copies: dict[Any, Any]) -> Any:
    """Copies of some commands in order. Returns the last one's token."""
    made, copies = None, dict(copies)
    for start in starts:
        made = copy(start, copies, editor.at)
        copies.update(zip(start.results, made.results, strict=True))
    assert made is not None
    return made.results[0]


def _copy_of(editor: Editor, buffer: Any, number: Any, unit: int = 1) -> Any:
    """A copy of a buffer by its number, which counts so many bytes, or, if that is 1, whole copies."""
    if unit == 1:
        number = editor.i64("arith.muli", number, editor.constant(NpuBuffer(buffer).bytes))
    return editor.advanced(buffer.results[0], number, "i8")


def _use_copy(fetch: Fetch, block: Any, here: Any, there: Any, token: Any) -> None:
    """Let the loop's body use the copy `here`, which `token`'s transfer has filled, and parts of it; `there` is the
    copy that is filled for a later iteration.
    """
    copies = (here.owner.operation, there.owner.operation)
    for use in list(fetch.buffer.results[0].uses):
        user = use.owner.operation
        if user not in copies and is_inside(user, block):
            user.operands[use.operand_number] = here
    fetch.wait.operands[0] = token
