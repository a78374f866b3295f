"""Programs that several work-items run together, on a real OpenCL runtime: the same results as by one."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from triton_porting_kit.backends.opencl.compiler import WORK_ITEMS, OpenCLBackend
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.driver.opencl import Container, OpenCLDevice
from triton_porting_kit.errors import AssertionFailed, OptionError
from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.places import DevicePlace

COUNTS = [8, 64]
SINGLE = [(1, "float32"), (1, "float32"), (1, "int32"), (1024, "float32"), (1024, "float32")]
"""The sizes and types of the results of `of_a_row`."""

CASES = [
    cases.softmax_case(17, 781, "bfloat16"),
    cases.matmul_case(17, 33, 65, "float32"),
    cases.layer_norm_backward_case(5, 300, "float32"),
]


@pytest.mark.parametrize("items", COUNTS)
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_kernel(case: Case, items: int, opencl: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WORK_ITEMS, str(items))
    for deviation in case.check(DevicePlace(opencl)):
        assert deviation.ok, deviation


@triton.jit
def of_a_row(X, S, M, A, C, R, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=0.0)
    tl.store(S, tl.sum(x))
    tl.store(M, tl.max(x * x))
    tl.store(A, tl.argmax(x, 0))
    tl.store(C + i, tl.cumsum(x, 0), mask=i < n)
    tl.store(R + i, tl.cumsum(x, 0, reverse=True), mask=i < n)


@pytest.mark.parametrize("items", COUNTS)
@pytest.mark.parametrize("n", [1024, 1000])
def test_reductions_and_scans_of_a_row(items: int, n: int, opencl: OpenCLDevice) -> None:
    """Work-items share a row, and combine what each has through local memory."""
    x = np.random.default_rng(1).integers(-1000, 1000, 1024).astype(np.float32)
    x[n:] = 0
    total, largest, place = (DeviceArray.zeros(1, kind, opencl) for kind in ("float32", "float32", "int32"))
    sums, back = (DeviceArray.zeros(1024, "float32", opencl) for _ in range(2))
    array = DeviceArray.from_numpy(x, opencl)
    compiled = of_a_row[(1,)](array, total, largest, place, sums, back, n, B=1024, work_items=items)
    assert (total.numpy()[0], largest.numpy()[0]) == (x.sum(), (x * x).max())
    assert place.numpy()[0] == x.argmax()
    np.testing.assert_array_equal(sums.numpy()[:n], np.cumsum(x)[:n])
    np.testing.assert_array_equal(back.numpy()[:n], np.cumsum(x[::-1])[::-1][:n])
    container = Container.unpack(compiled.asm["clbin"])
    assert container.work_items == items
    assert container.local_bytes > 0, "scratch is in local memory"


@triton.jit
def sums_before(X, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i, mask=i < n, other=0.0)
    tl.store(X + i, tl.cumsum(x, 0) - x, mask=i < n)


@pytest.mark.parametrize("n", [2, 3, 9])
def test_a_scan_by_one_of_several_work_items(n: int, opencl: OpenCLDevice) -> None:
    x = np.arange(1, n + 1, dtype=np.float32)
    array = DeviceArray.from_numpy(x, opencl)
    sums_before[(1,)](array, n, B=triton.next_power_of_2(n), work_items=8)
    np.testing.assert_array_equal(array.numpy(), np.cumsum(x) - x)


def test_barriers_of_sub_groups(opencl: OpenCLDevice) -> None:
    """Where the device has sub-groups, and a refusal where it has none."""
    x = np.random.default_rng(1).integers(-1000, 1000, 1024).astype(np.float32)
    results = [DeviceArray.zeros(size, kind, opencl) for size, kind in SINGLE]
    arguments = (DeviceArray.from_numpy(x, opencl), *results, 1024)
    options: Any = {"B": 1024, "work_items": 64, "sub_group_size": 8}
    if 8 not in opencl.info.sub_group_sizes:
        with pytest.raises(OptionError, match="sub_group_size is 8"):
            of_a_row[(1,)](*arguments, **options)
        return
    compiled = of_a_row[(1,)](*arguments, **options)
    total, largest, place, sums, back = (each.numpy() for each in results)
    assert (total[0], largest[0], place[0]) == (x.sum(), (x * x).max(), x.argmax())
    np.testing.assert_array_equal(sums, np.cumsum(x))
    np.testing.assert_array_equal(back, np.cumsum(x[::-1])[::-1])
    assert "tpk_sub_group_barrier();" in compiled.asm["opencl"]


@triton.jit
def of_rows(X, O, P, H: tl.constexpr, W: tl.constexpr):
    places = tl.arange(0, H)[:, None] * W + tl.arange(0, W)[None, :]
    x = tl.load(X + places)
    tl.store(O + tl.arange(0, H), tl.sum(x, 1))
    tl.store(O + H + tl.arange(0, W), tl.max(x, 0))
    tl.store(P + places, tl.cumsum(x, 1))


@pytest.mark.parametrize("shape", [(2, 512), (64, 16)])
def test_reductions_and_scans_of_rows(shape: tuple[int, int], opencl: OpenCLDevice) -> None:
    """Few rows are shared one after the other; of many, each work-item takes its own."""
    height, width = shape
    x = np.random.default_rng(2).integers(-1000, 1000, shape).astype(np.int32)
    out = DeviceArray.zeros(height + width, "int32", opencl)
    sums = DeviceArray.zeros(shape, "int32", opencl)
    of_rows[(1,)](DeviceArray.from_numpy(x, opencl), out, sums, H=height, W=width, work_items=64)
    np.testing.assert_array_equal(out.numpy(), np.concatenate([x.sum(1), x.max(0)]))
    np.testing.assert_array_equal(sums.numpy(), np.cumsum(x, 1))


@triton.jit
def ticket(Counter, Order, Lock, Total, X, B: tl.constexpr):
    mine = tl.atomic_add(Counter, 1)
    tl.store(Order + mine, tl.program_id(0))
    while tl.atomic_cas(Lock, 0, 1) != 0:
        pass
    i = tl.arange(0, B)
    tl.store(Total + i, tl.load(Total + i) + tl.load(X + i))
    tl.atomic_xchg(Lock, 0)
    tl.atomic_add(X + B + i, 1)


@pytest.mark.parametrize("items", COUNTS)
def test_what_happens_once(items: int, opencl: OpenCLDevice) -> None:
    """One work-item does scalar atomic operations, also those that a loop waits by; all get the result."""
    counter, lock = (DeviceArray.zeros(1, "int32", opencl) for _ in range(2))
    order = DeviceArray.from_numpy(np.full(100, -1, np.int32), opencl)
    total = DeviceArray.zeros(128, "int32", opencl)
    x = np.concatenate([np.arange(128), np.zeros(128)]).astype(np.int32)
    array = DeviceArray.from_numpy(x, opencl)
    ticket[(100,)](counter, order, lock, total, array, B=128, work_items=items)
    assert counter.numpy()[0] == 100
    assert sorted(order.numpy()) == list(range(100))
    np.testing.assert_array_equal(total.numpy(), 100 * x[:128])
    np.testing.assert_array_equal(array.numpy()[128:], 100)


@triton.jit
def in_place(X, H: tl.constexpr, n):
    i = tl.arange(0, H)
    for _ in range(n):
        x = tl.load(X + i[:, None] * H + i[None, :])
        tl.store(X + i[:, None] * H + i[None, :], tl.trans(x) + 1)


def test_what_other_work_items_wrote(opencl: OpenCLDevice) -> None:
    """Each element is read before another work-item overwrites it, and after one has written it."""
    x = np.arange(1024, dtype=np.int32).reshape(32, 32)
    array = DeviceArray.from_numpy(x, opencl)
    in_place[(1,)](array, H=32, n=3, work_items=8)
    np.testing.assert_array_equal(array.numpy(), x.T + 3)


@triton.jit
def counts(X, O, B: tl.constexpr):
    tl.store(O + tl.arange(0, 16), tl.histogram(tl.load(X + tl.arange(0, B)), 16))


def test_iterations_in_order(opencl: OpenCLDevice) -> None:
    x = (np.arange(256) ** 2 % 16).astype(np.int32)
    out = DeviceArray.zeros(16, "int32", opencl)
    counts[(1,)](DeviceArray.from_numpy(x, opencl), out, B=256, work_items=8)
    np.testing.assert_array_equal(out.numpy(), np.bincount(x, minlength=16))


@triton.jit(debug=True)
def checked(X, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    tl.device_assert(x < 10, "too big")
    tl.store(X + i, x + tl.sum(x))


def test_an_assertion(opencl: OpenCLDevice) -> None:
    """The first element in row-major order, and nothing behind the assertion runs."""
    values = np.zeros(64, np.int32)
    values[[37, 50]] = 10
    x = DeviceArray.from_numpy(values, opencl)
    checked[(1,)](x, B=64, work_items=8)
    line = inspect.getsourcelines(checked.fn)[1] + 4
    with pytest.raises(AssertionFailed, match=rf"element \(37\): .*:{line}, in checked: too big"):
        opencl.synchronize()
    np.testing.assert_array_equal(x.numpy(), values)


@triton.jit
def add_one(X, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(X + i, tl.load(X + i, mask=i < n) + 1, mask=i < n)


def test_a_kernel_that_maps_arrays_has_no_barriers(opencl: OpenCLDevice) -> None:
    x = DeviceArray.zeros(1000, "float32", opencl)
    compiled = add_one[(8,)](x, 1000, B=128, work_items=8)
    assert (x.numpy() == 1).all()
    assert "tpk_barrier();" not in compiled.asm["opencl"]


def test_as_many_work_items_as_the_warps_have(opencl: OpenCLDevice) -> None:
    """On a GPU; a core of a CPU runs one."""
    from triton.runtime import driver

    backend: Any = OpenCLBackend(driver.active.get_current_target())
    assert "simt" not in [stage.name for stage in backend.pipeline(backend.parse_options({})).stages]
    gpu: Any = OpenCLBackend(triton.backends.compiler.GPUTarget("opencl", "absent", 32))
    stages = gpu.pipeline(gpu.parse_options({"num_warps": 2})).stages
    assert "simt" in [stage.name for stage in stages]
    with pytest.raises(OptionError, match="sub_group_size is 24"):
        gpu.pipeline(gpu.parse_options({"sub_group_size": 24}))
    with pytest.raises(OptionError, match="work_items is 24"):
        backend.pipeline(backend.parse_options({"work_items": 24}))
