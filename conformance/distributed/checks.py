"""The checks of the level: what ranks in several processes give."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.distributed import collectives, litmus, modelled, overlapped, ranks
from triton_porting_kit.conformance.distributed.workers import Failed, Workers

CHECKS = Checks("distributed", kit_device=True, needs=("feature:groups",), seconds=240.0)

SIZES = (2, 4, 8)
"""Ranks of a group."""
_TYPES = {2: ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"),
          4: ("float16", "int64"), 8: ("float32",)}  # fmt: skip
_LOST_SECONDS = 5.0
_ROUNDS = {2: 500, 4: 40, 8: 10}
"""Fewer rounds where ranks outnumber cores, since waits take turns of the scheduler then."""


@contextmanager
def _workers(context: Context, count: int, **environment: str) -> Iterator[Workers]:
    """Processes of the backend under test. Raises `MissingHook` if its device has no groups."""
    memory = context.device.open_group(0, 1, 1 << 16, lambda content: [content])
    context.device.close_group()
    del memory
    found = Workers(count, backend=context.session.target.backend, environment=environment)
    try:
        yield found
    finally:
        found.close()


def _equal(context: Context, what: str, found: Any, expected: Any) -> None:
    context.expect(found == expected, what, f"{found} instead of {expected}")


def _memory(count: int) -> Callable[[Context], None]:
    def body(context: Context) -> None:
        with _workers(context, count) as workers:
            shifted = workers.run(ranks.shift, count, 1000, 1)
            expected = [[(rank - 1) % count + 1 + 10.0 * rank] for rank in range(count)]
            _equal(context, "each rank has its left neighbour's values", shifted, expected)
            rows = [[1000.0 * peer, 1000.0 * peer + 127] for peer in range(count)]
            collected = workers.run(ranks.collect, count)
            _equal(context, "ranks read before reuse", collected, [[*rows, [-1.0]]] * count)
            counted = workers.run(ranks.barriers, count, _ROUNDS[count])
            _equal(context, "no rank passes a barrier early", counted, [0] * count)
            for what, kind in (
                ("size", "RanksDisagree"),
                ("type", "RanksDisagree"),
                ("heap", "SymmetricHeapFull"),
            ):
                errors = [text.partition(":")[0] for text in workers.run(ranks.disagree, count, what)]
                _equal(context, f"a wrong {what} is refused on all ranks", errors, [kind] * count)

    return body


def _order(count: int) -> Callable[[Context], None]:
    def body(context: Context) -> None:
        rounds = _ROUNDS[count]
        tests: list[tuple[str, Callable[..., int], int]] = [("message passing", litmus.passing, count)]
        if count == 2:
            tests.append(("reuse after reading", litmus.reuse, 2))
        if platform.machine() == "x86_64":
            if count == 2:
                tests.append(("store buffering with a fence", litmus.buffering, 2))
            if count == 4:
                tests.append(("independent reads of independent writes", litmus.reads, 4))
        with _workers(context, count) as workers:
            for what, test, size in tests:
                _equal(context, f"{what}: no forbidden result", workers.run(test, size, rounds), [0] * size)

    return body


def _collectives(count: int) -> Callable[[Context], None]:
    def body(context: Context) -> None:
        with _workers(context, count) as workers:
            for dtype in _TYPES[count]:
                found = workers.run(collectives.compare, count, dtype)
                _equal(context, f"collectives of {dtype}", found, [[]] * count)

    return body


def _overlapped(count: int) -> Callable[[Context], None]:
    def body(context: Context) -> None:
        with _workers(context, count) as workers:
            for function, arguments in (
                (overlapped.products, (19, 21, 17)),
                (overlapped.experts, (11, 19, 2, 2)),
                (overlapped.attention, (3, 19, 16, True)),
                (overlapped.attention, (1, 37, 32, False)),
            ):
                found = workers.run(function, count, *arguments)
                _equal(context, f"{function.__name__} {arguments}", found, [[]] * count)

    return body


def _delayed(count: int) -> Callable[[Context], None]:
    def body(context: Context) -> None:
        rounds = _ROUNDS[count] // 5
        for seed in range(2):
            with _workers(context, count, TPK_RANK_DELAYS=str(seed + 1)) as workers:
                counted = workers.run(ranks.barriers, count, rounds)
                _equal(context, f"no rank passes a barrier early, seed {seed}", counted, [0] * count)
                found = workers.run(collectives.again, count, rounds, 100)
                _equal(context, f"sums of {rounds} all-reduces, seed {seed}", found, [0] * count)

    return body


def _modelled(name: str) -> Callable[[Context], None]:
    def body(context: Context) -> None:
        found = modelled.in_process(name)
        context.expect(not found, modelled.requirement(name), found)

    return body


def _has_process(context: Context) -> bool:
    """Whether a rank has another process beside its own, as a simulated chip has."""
    memory = context.device.open_group(0, 1, 1 << 16, lambda content: [content])
    context.device.close_group()
    return getattr(memory, "process", None) is not None


def _lost(count: int, how: str) -> Callable[[Context], None]:
    def body(context: Context) -> None:
        if how == "chip" and not _has_process(context):
            context.expect(True, "the device has no process that could end by itself")
            return
        kind = "RankLost" if how == "host" else "DeviceLost"
        with _workers(context, count) as workers:
            workers.start(ranks.lose, count, how)
            for rank in (rank for rank in range(count) if rank != 1):
                found = workers.answer(rank)
                right = all(
                    text.startswith(kind) and "rank 1 is lost" in text for text in found["errors"][:-1]
                )
                context.expect(right, f"rank {rank} raises {kind}", f"it reports {found['errors']}")
                _equal(context, f"rank {rank} knows which is lost", found["errors"][2:], ["rank 1"])
                context.expect(
                    found["seconds"] < _LOST_SECONDS,
                    f"rank {rank} reports it in time",
                    f"{found['seconds']} s",
                )
            context.refuses("the lost rank", lambda: workers.answer(1), Failed)

    return body


@CHECKS.check(
    "failures/endless-wait",
    "Ranks that wait for each other end by a timeout, and each names who waits for what.",
)
def _endless(context: Context) -> None:
    with _workers(context, 2) as workers:
        workers.start(ranks.starve, 2, timeout=2.0)
        for found in (workers.answer(0), workers.answer(1)):
            for rank, least in enumerate((7, 8)):
                text = f"rank {rank} waits in a kernel for element {rank} of allocation 1"
                context.expect(text in found, f"the error names what rank {rank} waits for", found)
                context.expect(f"to reach {least}" in found, "and the number", found)


for _count in SIZES:
    CHECKS.add(
        f"memory/{_count}", f"{_count} ranks share symmetric memory and refuse what differs.", _memory(_count)
    )
    CHECKS.add(
        f"order/{_count}", f"{_count} ranks see each other's stores in the specified order.", _order(_count)
    )
    CHECKS.add(
        f"collectives/{_count}", f"Collectives of {_count} ranks give the right values.", _collectives(_count)
    )
    CHECKS.add(
        f"overlapped/{_count}",
        f"Kernels that compute while they communicate are right on {_count} ranks.",
        _overlapped(_count),
    )
    CHECKS.add(
        f"delays/{_count}",
        f"Barriers and sums of {_count} ranks are right if puts and notifications are delayed.",
        _delayed(_count),
    )
    for _how in ("kernel", "host"):
        CHECKS.add(
            f"failures/lost-{_how}-{_count}",
            f"When one of {_count} ranks ends, the others report it, waiting in a {_how} call.",
            _lost(_count, _how),
        )
CHECKS.add(
    "failures/lost-chip-2",
    "When the simulated chip of a rank ends, the other one reports it.",
    _lost(2, "chip"),
)
for _name in (*modelled.PROGRAMS, modelled.THREADS):
    CHECKS.add(f"model/{_name}", modelled.requirement(_name), _modelled(_name), needs=(), kit_device=False)
