"""Devices without shared virtual memory: pointers are buffers with offsets."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from failing_device import check_that_launches_leave_nothing, failing_on

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.driver.opencl import Container, OpenCLDevice
from triton_porting_kit.errors import CompilationError, InvalidModule, InvalidPointer
from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.places import DevicePlace

CASES = [
    cases.softmax_case(17, 781, "float32"),
    cases.matmul_case(17, 33, 65, "float32"),
    cases.layer_norm_backward_case(5, 300, "float32"),
]


@triton.jit
def add_one(X, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(X + i, tl.load(X + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def gathered(X, PLACES, OUT, B: tl.constexpr):
    i = tl.arange(0, B)
    places = X + tl.load(PLACES + i)
    tl.store(OUT + i, tl.load(tl.where(i % 2 == 0, places, places + 1)))


@triton.jit
def by_number(X, OUT, B: tl.constexpr):
    place = tl.load(X).to(tl.pointer_type(tl.float32))
    tl.store(OUT + tl.arange(0, B), tl.load(place + tl.arange(0, B)))


@triton.jit
def of_two(X, Y, OUT, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(OUT + i, tl.load(tl.where(i % 2 == 0, X + i, Y + i)))


@triton.jit
def kept(X, OUT):
    tl.store(OUT, X.to(tl.int64))


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_kernel(case: Case, buffers: OpenCLDevice) -> None:
    for deviation in case.check(DevicePlace(buffers)):
        assert deviation.ok, deviation


def test_an_argument_in_the_middle_of_its_buffer(buffers: OpenCLDevice) -> None:
    x = DeviceArray.zeros(100, "float32", buffers)
    compiled = add_one[(1,)](x[30:], 40, B=64)
    np.testing.assert_array_equal(x.numpy(), [0] * 30 + [1] * 40 + [0] * 30)
    container = Container.unpack(compiled.asm["clbin"])
    assert container.buffers
    assert "__global char *buffer_0" in container.source


def test_copies_and_fills_within_a_buffer(buffers: OpenCLDevice) -> None:
    start = buffers.memalloc(1000)
    buffers.memset(start, 7, 1000)
    buffers.memcpy_htod(start + 100, bytes(range(50)))
    buffers.memcpy_dtod(start + 500, start + 100, 50)
    found = np.empty(1000, np.uint8)
    buffers.memcpy_dtoh(found, start)
    buffers.synchronize()
    expected = np.full(1000, 7, np.uint8)
    expected[100:150] = expected[500:550] = np.arange(50)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(InvalidPointer, match=r"101 bytes from .* exceed the allocation of 1000 bytes"):
        buffers.memset(start + 900, 0, 101)
    buffers.memfree(start)


def test_pointers_within_one_buffer(buffers: OpenCLDevice) -> None:
    values = np.arange(100, dtype=np.float32)
    places = np.random.default_rng(0).integers(0, 99, 64).astype(np.int32)
    x, i = (DeviceArray.from_numpy(each, buffers) for each in (values, places))
    out = DeviceArray.zeros(64, "float32", buffers)
    gathered[(1,)](x, i, out, B=64)
    np.testing.assert_array_equal(out.numpy(), values[places + np.arange(64) % 2])


@pytest.mark.parametrize(
    ("kernel", "arrays", "line", "operation"),
    [
        (by_number, 2, 2, "llvm.inttoptr"),
        (of_two, 3, 3, "llvm.ptrtoint"),
        (kept, 2, 2, "llvm.ptrtoint"),
    ],
)
def test_an_address_as_a_number_is_refused(
    kernel: Any, arrays: int, line: int, operation: str, buffers: OpenCLDevice
) -> None:
    given = [DeviceArray.zeros(64, "int64" if kernel is not of_two else "float32", buffers)] * arrays
    constants = {"B": 16} if kernel is not kept else {}
    with pytest.raises(CompilationError, match="without shared virtual memory") as caught:
        kernel[(1,)](*given, **constants)
    assert caught.value.location is not None
    assert caught.value.location.line == inspect.getsourcelines(kernel.fn)[1] + line
    assert operation in str(caught.value)


def test_a_binary_for_shared_memory_is_refused(buffers: OpenCLDevice) -> None:
    x = DeviceArray.zeros(100, "float32", buffers)
    container = Container.unpack(add_one[(2,)](x, 100, B=64).asm["clbin"])
    other = Container(**{**vars(container), "buffers": False})
    with pytest.raises(InvalidModule, match=r"takes addresses, and memory of .* by buffers with offsets"):
        buffers.load_module(other.pack(), "add_one")


def test_ten_thousand_launches_leave_nothing(buffers: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    for failing in failing_on(buffers, monkeypatch):
        check_that_launches_leave_nothing(failing)
