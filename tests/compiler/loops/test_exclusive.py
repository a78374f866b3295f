"""Which kernels ask whether they may update memory without locks, and what an answer changes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import triton
import triton.language as tl
from native_functions import host
from ttir_source import ttir_text

from triton_porting_kit.compiler.loops import lower_to_loops
from triton_porting_kit.compiler.structured import import_ttir

TYPES = {"X": "*i32", "O": "*i32", "n": "i32"}


def told_at(kernel: Any, *, runs_alone: bool = True, name: str = "exclusive") -> int | None:
    module = import_ttir(ttir_text(kernel, TYPES), promises=True)
    text = lower_to_loops(module, host(), runs_alone=runs_alone).text
    found = re.search(rf"__{name}\((-?\d+) : i64\)", text)
    return int(found[1]) if found else None


@triton.jit
def adds(X, O, n):
    i = tl.arange(0, 16)
    tl.atomic_add(O + i, tl.load(X + i), sem="relaxed")


@triton.jit
def adds_in_a_loop(X, O, n):
    for _ in range(n):
        tl.atomic_add(O + tl.arange(0, 16), 1)


@triton.jit
def adds_a_scalar(X, O, n):
    tl.atomic_add(O, n)


@triton.jit
def adds_for_the_system(X, O, n):
    tl.atomic_add(O + tl.arange(0, 16), 1, scope="sys")


@triton.jit
def swaps(X, O, n):
    tl.atomic_cas(O, n, n + 1)


@triton.jit
def spins(X, O, n):
    tl.atomic_add(O + tl.arange(0, 16), 1)
    while tl.load(X, volatile=True) == 0:
        pass


@triton.jit
def prints(X, O, n):
    tl.atomic_add(O + tl.arange(0, 16), 1)
    tl.device_print("n", n)


@triton.jit
def observes(X, O, n):
    tl.store(O, tl.load(X, volatile=True))


@triton.jit
def copies(X, O, n):
    tl.store(O, tl.load(X))


@pytest.mark.parametrize("kernel", [adds, adds_in_a_loop], ids=lambda kernel: kernel.__name__)
def test_updates_of_tiles_ask(kernel: Any) -> None:
    assert told_at(kernel) == 0
    assert told_at(kernel, runs_alone=False) == -1


@pytest.mark.parametrize(
    "kernel",
    [adds_a_scalar, adds_for_the_system, swaps, spins, prints, observes],
    ids=lambda kernel: kernel.__name__,
)
def test_others_tell_that_they_must_not_be_disturbed(kernel: Any) -> None:
    assert told_at(kernel) == -1


@triton.jit
def adds_and_swaps(X, O, n):
    tl.atomic_add(O + tl.arange(0, 16), 1, sem="relaxed")
    tl.atomic_cas(X, n, n + 1)


@pytest.mark.parametrize("kernel", [adds, adds_in_a_loop, adds_and_swaps], ids=lambda kernel: kernel.__name__)
def test_kernels_that_ask_take_locks_too(kernel: Any) -> None:
    assert told_at(kernel, name="stripes") == 64
    assert told_at(kernel, name="stripes", runs_alone=False) is None


def test_other_operations_take_the_lock_of_their_address() -> None:
    """They remain atomic, and run beside none that is a load and a store."""
    module = import_ttir(ttir_text(adds_and_swaps, TYPES), promises=True)
    lines = lower_to_loops(module, host(), runs_alone=True).text.splitlines()
    (swap,) = (i for i, line in enumerate(lines) if "cmpxchg" in line)
    assert any("atomicrmw xchg" in line for line in lines[swap - 25 : swap])
    assert any("atomic release" in line for line in lines[swap : swap + 15])


@pytest.mark.parametrize("kernel", [adds_a_scalar, swaps, spins, copies], ids=lambda kernel: kernel.__name__)
def test_others_take_no_locks(kernel: Any) -> None:
    assert told_at(kernel, name="stripes") is None


def test_kernels_without_atomic_operations_say_nothing() -> None:
    assert told_at(copies) is None


if hasattr(tl, "atomic_poll"):

    @triton.jit
    def polls(X, O, n):
        tl.atomic_add(O + tl.arange(0, 16), 1)
        tl.atomic_poll(X, 1)

    def test_a_kernel_that_waits_does_not_ask() -> None:
        assert told_at(polls) == -1
