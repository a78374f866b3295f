"""Launches whose result depends on the order of programs are found, and others are left as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.runtime.driver import driver

from triton_porting_kit.conformance.public.examining import examine_launches

torch = pytest.importorskip("torch")


@triton.jit
def chain(Y):
    program = tl.program_id(0)
    if program > 0:
        tl.store(Y + program, tl.load(Y + program - 1) + 1)


@triton.jit
def overlapping(X, Y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    tl.store(Y + i, tl.load(X + i, mask=i < n) + tl.program_id(0), mask=i < n)


@triton.jit
def same(X, Y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    tl.store(Y + i, 2 * tl.load(X + i, mask=i < n), mask=i < n)


@triton.jit
def in_place(X, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(X + i, 2 * tl.load(X + i, mask=i < n), mask=i < n)


@triton.jit
def _next(COUNT):
    return tl.atomic_add(COUNT, 1)


@triton.jit
def numbered(COUNT, Y):
    tl.store(Y + _next(COUNT), tl.program_id(0))


KERNELS = (chain, overlapping, same, in_place, numbered)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    kind = type(driver.active)
    monkeypatch.setattr(kind, "launcher_cls", kind.launcher_cls)  # restores it
    found: list[str] = []
    examine_launches(found.append)
    for kernel in KERNELS:
        kernel.device_caches.clear()  # launchers made before are not examined
    yield found
    for kernel in KERNELS:
        kernel.device_caches.clear()


def test_programs_that_read_what_others_store(found: list[str]) -> None:
    chain[(8,)](torch.zeros(8))
    assert "kernel 'chain' (test_public_examining.py:" in found[0]
    assert "argument 'Y' depends on the order in which programs run" in found[0]


def test_programs_that_store_to_the_same_place(found: list[str]) -> None:
    x, y = torch.full((100,), 0.3), torch.zeros(100)  # every byte of 0.3 differs from that of 1.3
    overlapping[(7,)](x, y, 100, BLOCK=32)
    (text,) = found
    assert "byte 64 of argument 'Y' depends on the order" in text


@pytest.mark.parametrize("times", [1, 2])
def test_launches_without_races_are_left_as_they_are(found: list[str], times: int) -> None:
    x, y = torch.randn(100), torch.zeros(100)
    expected: Any = 2 * x
    same[(7,)](x, y, 100, BLOCK=32)
    for _ in range(times):
        in_place[(4,)](x, 100, BLOCK=32)
    assert torch.equal(y, expected)
    assert torch.equal(x, expected * 2 ** (times - 1))
    assert not found


def test_atomic_operations_may_depend_on_the_order(found: list[str]) -> None:
    count, y = torch.zeros(1, dtype=torch.int32), torch.zeros(8, dtype=torch.int32)
    numbered[(8,)](count, y)
    assert sorted(y.tolist()) == [*range(8)]
    assert not found
