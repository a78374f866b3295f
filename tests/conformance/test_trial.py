"""What becomes of a check's body: evidence, guard zones, exceptions and their stage."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from conformance_helpers import memory

from triton_porting_kit.conformance.batches import try_checks
from triton_porting_kit.conformance.check import Check, Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context, Session
from triton_porting_kit.conformance.memory import _TorchBlock
from triton_porting_kit.conformance.record import Listing, Record
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.conformance.trial import try_check


@triton.jit
def copy_kernel(X, Y, shift, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(Y + i + shift, tl.load(X + i))


@triton.jit
def broken_kernel(X):
    tl.store(X, undefined_name)  # noqa: F821


@triton.jit
def vendor_kernel(X):
    tl.store(X, tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [1], tl.int32, True, 1))


def copy(context: Context, shift: int = 0) -> None:
    x = context.array(np.arange(16, dtype=np.int32), "i32")
    y = context.empty((16,), "i32")
    copy_kernel[(1,)](x, y, shift, 16)
    context.compare("copy", identical(context.read(y), np.arange(16, dtype=np.int32)))


def wrong(context: Context) -> None:
    x = context.array(np.arange(16, dtype=np.int32), "i32")
    context.compare("x", identical(context.read(x), np.arange(16, dtype=np.int32) + 1))


def beyond(context: Context) -> None:
    x = context.array(np.arange(16, dtype=np.int32), "i32")
    y = context.empty((16,), "i32")
    copy_kernel[(1,)](x, y, 1, 16)
    context.expect(True, "the kernel ran")


def broken(context: Context) -> None:
    broken_kernel[(1,)](context.empty((1,), "i32"))


def refused(context: Context) -> None:
    vendor_kernel[(1,)](context.empty((1,), "i32"))


def nothing(context: Context) -> None:
    pass


def mistaken(context: Context) -> None:
    context.array(np.zeros(1), "no such type")


def device_fails(context: Context) -> None:
    """As torch's memory does after a kernel has: with an exception from C, which has no frame of its own."""
    block = object.__new__(_TorchBlock)
    block._tensor = SimpleNamespace(cpu=[].pop)
    block.read()


def refuses_nothing(context: Context) -> None:
    context.refuses("a call", lambda: 7, ValueError)


def refuses_otherwise(context: Context) -> None:
    context.refuses("a call", lambda: [][1], ValueError)


@pytest.fixture(scope="module")
def session() -> Session:
    return Session("cpu", memory(), seed=5)


def run(body: Any, session: Session, listing: Listing | None = None) -> Record:
    return try_check(Check(f"runtime/trial/{body.__name__}", "It works.", body), session, listing)


@pytest.mark.parametrize(
    ("body", "status", "stage", "message"),
    [
        (copy, Status.PASS, "", ""),
        (wrong, Status.FAIL, "wrong result", "x: 16 of 16 differ; element [0] is"),
        (beyond, Status.FAIL, "out-of-bounds write", "0 bytes behind the end of an array of i32"),
        (broken, Status.FAIL, "compiled: frontend", "undefined_name"),
        (refused, Status.FAIL, "compiled: ", "CompilationError"),
        (nothing, Status.HARNESS_ERROR, "", ""),
        (mistaken, Status.HARNESS_ERROR, "check", "KeyError"),
        (device_fails, Status.FAIL, "launched", "IndexError: pop from empty list"),
        (refuses_nothing, Status.FAIL, "wrong result", "it returned 7"),
        (refuses_otherwise, Status.FAIL, "", "it raised IndexError"),
    ],
)
def test_outcomes(body: Any, status: Status, stage: str, message: str, session: Session) -> None:
    record = run(body, session)
    assert record.status is status, record
    assert record.stage.startswith(stage)
    assert message in record.message
    assert Record.from_json(record.to_json()) == record


def test_a_clean_refusal_is_unsupported(session: Session) -> None:
    listing = Listing("unsupported", "runtime/*", "no such chip")
    assert run(refused, session, listing).status is Status.UNSUPPORTED
    assert run(copy, session, listing).status is Status.UNEXPECTED_PASS
    assert run(beyond, session, listing).status is Status.FAIL


def test_seeds_belong_to_checks(session: Session) -> None:
    drawn = []

    def draw(context: Context) -> None:
        drawn.append(int(context.random.integers(1 << 40)))
        context.expect(True, "drawn")

    checks = [Check(f"runtime/{name}", "It draws.", draw) for name in "abab"]
    records = list(try_checks(checks, session))
    assert drawn[:2] == drawn[2:]
    assert drawn[0] != drawn[1]
    assert records[0].seed == records[2].seed != records[1].seed


def test_collecting() -> None:
    checks = Checks("runtime/memory", kit_device=True)

    @checks.check("zero", "It is.", needs=("feature:streams",), seconds=5)
    def zero(context: Context) -> None:
        pass

    (found,) = checks
    assert (found.name, found.level, found.kit_device) == ("runtime/memory/zero", "runtime", True)
    assert (found.needs, found.seconds) == (frozenset({"feature:streams"}), 5)
    with pytest.raises(ValueError, match="in no level"):
        Checks("elsewhere/x")
