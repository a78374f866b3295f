"""Atomic operations of many programs on the same elements, many times: an update that is lost shows in what remains, or in
what a program finds next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from triton_porting_kit.conformance.language.ops.atomics import SECTION
from triton_porting_kit.conformance.language.shapes import Shape
from triton_porting_kit.conformance.language.table import FLOAT, WIDE, Op
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.types import KINDS, Array, Kind

PROGRAMS, TURNS, LANES = 64, 1024, 128
"""All programs update the same `LANES` elements, `TURNS` times each. Two threads that take turns at updates of a few
nanoseconds meet at one element thousands of times."""
MOST = 1 << 19
"""More than the updates of one element."""
SCOPES = {"programs": "", "programs_sys": ', scope="sys"'}
"""Without a scope, updates only exclude each other on one device, which may be cheaper."""
HEAD = f"    pid = tl.program_id(0)\n    i = tl.arange(0, {LANES})\n"
SIGNLESS = ("i32", "i64")
"""For operations that are the same for unsigned types."""


def _op(
    name: str, form: str, types: tuple[str, ...], build: Callable[[Kind, Shape], Work], turns: int = TURNS
) -> Op:
    shapes = (Shape(shape, (LANES,), {"scope": scope, "turns": turns}) for shape, scope in SCOPES.items())
    return Op(f"{name}_raced", SECTION, form, build, types, tuple(shapes))


def _rows(kind: Kind, right: Callable[[Array], Array]) -> Result:
    """The elements that all programs update, then a row of each program. `right` judges each column."""
    shape = (PROGRAMS + 1, LANES)
    return Result(
        kind,
        np.zeros(shape, kind.host),
        initial=np.zeros(shape, kind.host),
        accept=lambda found: np.broadcast_to(right(found), shape),
    )


def _add(kind: Kind, shape: Shape) -> Work:
    """Each program adds 1 more often than it subtracts 1. All sums on the way are exact in every type."""
    body = f"""
    one = tl.full(({LANES},), 1, {kind.language})
    for turn in range({shape.params["turns"]}):
        tl.atomic_add(X + i, one{shape.params["scope"]})
        tl.atomic_add(X + i, 0 - one{shape.params["scope"]})
    tl.atomic_add(X + i, one{shape.params["scope"]})
"""
    after = np.full(LANES, PROGRAMS, kind.host)
    result = Result(kind, after, initial=np.zeros_like(after))
    return Work(f"def kernel_add_raced(X):\n{HEAD}{body}", (), (result,), PROGRAMS)


def _xor(kind: Kind, shape: Shape) -> Work:
    """Each program flips its own bits an odd number of times."""
    body = f"""
    own = tl.full(({LANES},), 0, {kind.language}) + (pid + 1).to({kind.language})
    for turn in range({shape.params["turns"] + 1}):
        tl.atomic_xor(X + i, own{shape.params["scope"]})
"""
    after = np.full(LANES, np.bitwise_xor.reduce(np.arange(PROGRAMS) + 1), kind.host)
    result = Result(kind, after, initial=np.zeros_like(after))
    return Work(f"def kernel_xor_raced(X):\n{HEAD}{body}", (), (result,), PROGRAMS)


def _exchange(kind: Kind, shape: Shape) -> Work:
    """Programs exchange values, and none is lost: each is at last with a program, or in the element."""
    body = f"""
    value = tl.full(({LANES},), 0, {kind.language}) + (pid + 1).to({kind.language})
    for turn in range({shape.params["turns"]}):
        value = tl.atomic_xchg(X + i, value{shape.params["scope"]})
    tl.store(X + (pid + 1) * {LANES} + i, value)
"""

    def right(found: Array) -> Array:
        return np.asarray(np.all(np.sort(found, 0) == np.arange(PROGRAMS + 1)[:, None], 0))

    return Work(f"def kernel_xchg_raced(X):\n{HEAD}{body}", (), (_rows(kind, right),), PROGRAMS)


def _compare(kind: Kind, shape: Shape) -> Work:
    """Programs count up. The counter is as high as the number of attempts that succeeded."""
    body = f"""
    old = tl.full(({LANES},), 0, {kind.language})
    won = old
    for turn in range({shape.params["turns"]}):
        found = tl.atomic_cas(X + i, old, old + 1{shape.params["scope"]})
        mine = found == old
        won += mine.to({kind.language})
        old = tl.where(mine, old + 1, found)
    tl.store(X + (pid + 1) * {LANES} + i, won)
"""

    def right(found: Array) -> Array:
        every = found[1:].astype(np.int64).sum(0)
        return np.asarray((found[0] == every.astype(kind.host)) & (every >= shape.params["turns"]))

    return Work(f"def kernel_cas_raced(X):\n{HEAD}{body}", (), (_rows(kind, right),), PROGRAMS)


def _bits(kind: Kind, shape: Shape) -> Work:
    """Each program sets its bit and clears it, and finds it as it has left it."""
    programs = kind.bits
    body = f"""
    bit = tl.full(({LANES},), 1, {kind.language}) << pid.to({kind.language})
    wrong = tl.full(({LANES},), 0, tl.int32)
    for turn in range({PROGRAMS * shape.params["turns"] // programs}):
        wrong += ((tl.atomic_or(X + i, bit{shape.params["scope"]}) & bit) != 0).to(tl.int32)
        wrong += ((tl.atomic_and(X + i, ~bit{shape.params["scope"]}) & bit) == 0).to(tl.int32)
    tl.store(O + pid * {LANES} + i, wrong)
"""
    after = np.zeros(LANES, kind.host)
    results = Result(kind, after, initial=after), _none_wrong(programs)
    return Work(f"def kernel_bits_raced(X, O):\n{HEAD}{body}", (), results, programs)


def _none_wrong(programs: int) -> Result:
    return Result(KINDS["i32"], np.zeros((programs, LANES), np.int32))


def _extreme(name: str) -> Callable[[Kind, Shape], Work]:
    """Every other program goes one beyond what it knows. What it finds next is not short of that. The programs between
    them change nothing, and must not undo anything."""
    sign, less, first = ("+", "<", 0) if name == "max" else ("-", ">", MOST)

    def build(kind: Kind, shape: Shape) -> Work:
        body = f"""
    known = tl.full(({LANES},), {first}, {kind.language})
    step = (pid % 2).to({kind.language})
    wrong = tl.full(({LANES},), 0, tl.int32)
    for turn in range({shape.params["turns"]}):
        beyond = known {sign} step
        found = tl.atomic_{name}(X + i, beyond{shape.params["scope"]})
        wrong += (found {less} known).to(tl.int32)
        known = tl.{name}imum(found, beyond)
    tl.store(O + pid * {LANES} + i, wrong)
"""

        def right(found: Array) -> Array:
            way = np.abs(found.astype(np.float64) - first)
            return np.asarray((way >= shape.params["turns"]) & (way <= MOST))

        start = np.full(LANES, first, kind.host)
        results = Result(kind, start, initial=start, accept=right), _none_wrong(PROGRAMS)
        return Work(f"def kernel_{name}_raced(X, O):\n{HEAD}{body}", (), results, PROGRAMS)

    return build


OPS: tuple[Op, ...] = (
    _op("atomic_add", "tl.atomic_add(p, x)", (*SIGNLESS, *FLOAT), _add),
    _op("atomic_xor", "tl.atomic_xor(p, x)", SIGNLESS, _xor),
    _op("atomic_xchg", "tl.atomic_xchg(p, x)", (*SIGNLESS, *WIDE), _exchange, 4 * TURNS),
    _op("atomic_cas", "tl.atomic_cas(p, expected, x)", ("i16", *SIGNLESS, *WIDE), _compare),
    _op("atomic_and_or", "tl.atomic_or(p, x); tl.atomic_and(p, y)", SIGNLESS, _bits),
    _op("atomic_max", "tl.atomic_max(p, x)", ("i32", "u32", "u64", "fp32"), _extreme("max"), 4 * TURNS),
    _op("atomic_min", "tl.atomic_min(p, x)", ("i32", "u32", "u64", "fp32"), _extreme("min"), 4 * TURNS),
)
