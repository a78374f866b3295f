"""Kernels on a real OpenCL runtime: results, failures, what the cache holds, and that nothing is left over."""

from __future__ import annotations

import gc
import inspect
import math
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.language.extra.cpu import libdevice

from triton_porting_kit.backends.opencl.compiler import OpenCLBackend
from triton_porting_kit.compiler import opencl_failure
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.driver.opencl import (
    BuildFailure,
    Container,
    OpenCLDevice,
    build_source,
    device_infos,
    streams,
)
from triton_porting_kit.errors import AssertionFailed, CompilationError, InvalidPointer, OptionError
from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.places import DevicePlace

CASES = [
    cases.vector_add_case(1823, "float32"),
    cases.softmax_case(17, 781, "bfloat16"),
    cases.matmul_case(17, 33, 65, "float32"),
    cases.matmul_case(17, 33, 65, "int8"),
    cases.layer_norm_backward_case(5, 300, "float32"),
    cases.dropout_case(1823, "float16"),
    cases.cumulative_sum_case(3, 200, "float32"),
]


@triton.jit
def add_one(X, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(X + i, tl.load(X + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def remainders(X, Y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(X + i, tl.load(X + i) % tl.load(Y + i))


@triton.jit
def count(X):
    tl.atomic_add(X, 1)


@triton.jit
def count_halves(X):
    tl.atomic_add(X + tl.program_id(0) % 2, 1.0)


@triton.jit(debug=True)
def checked(X, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.device_assert(tl.load(X + i) < 10, "too big")


@triton.jit
def printing(X):
    tl.device_print("x", tl.load(X))


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_kernel(case: Case, opencl: OpenCLDevice) -> None:
    for deviation in case.check(DevicePlace(opencl)):
        assert deviation.ok, deviation


def test_atomic_operations_of_many_programs(opencl: OpenCLDevice) -> None:
    """Also of 16 bits, by the 32 around them: two neighbours are counted at once."""
    counter = DeviceArray.zeros(1, "int32", opencl)
    count[(1000,)](counter)
    assert counter.numpy().tolist() == [1000]
    halves = DeviceArray.zeros(2, "float16", opencl)
    count_halves[(1000,)](halves)
    assert halves.numpy().tolist() == [500, 500]


def test_the_container_holds_source_and_binary(opencl: OpenCLDevice) -> None:
    x = DeviceArray.zeros(100, "float32", opencl)
    compiled = add_one[(2,)](x, 100, B=64)
    container = Container.unpack(compiled.asm["clbin"])
    assert (container.name, container.kernel) == ("add_one", "tpk_add_one")
    assert (container.device, container.driver) == (opencl.info.arch, opencl.info.driver)
    assert container.source == compiled.asm["opencl"]
    assert container.binary
    assert compiled.metadata.opencl_driver == opencl.info.driver, "the driver is part of the cache's key"


def test_a_container_of_another_driver_is_built_from_its_source(opencl: OpenCLDevice) -> None:
    x = DeviceArray.zeros(100, "float32", opencl)
    container = Container.unpack(add_one[(2,)](x, 100, B=64).asm["clbin"])
    other = Container(**{**vars(container), "driver": "another", "binary": b"of another driver"})
    module = opencl.load_module(other.pack(), "add_one")
    block = np.uint64(x.data_ptr()).tobytes() + np.int32(100).tobytes() + bytes(4)
    opencl.launch(opencl.get_function(module, "add_one"), (2,), 0, block)
    opencl.synchronize()
    opencl.unload_module(module)
    assert (x.numpy() == 2).all()


def test_an_assertion_names_program_element_and_line(opencl: OpenCLDevice) -> None:
    values = np.zeros(64, np.int32)
    values[37] = 10
    x = DeviceArray.from_numpy(values, opencl)
    checked[(1,)](x, B=64)
    line = inspect.getsourcelines(checked.fn)[1] + 3
    with pytest.raises(
        AssertionFailed, match=rf"program \(0, 0, 0\), element \(37\): .*:{line}, in checked: too big"
    ):
        opencl.synchronize()
    opencl.synchronize()


def test_what_has_no_word_in_opencl_c_is_refused(opencl: OpenCLDevice) -> None:
    with pytest.raises(CompilationError, match="OpenCL C emission cannot write the routine tpk_host_print"):
        printing[(1,)](DeviceArray.zeros(1, "int32", opencl))


def test_a_build_that_fails_names_the_kernels_line(opencl: OpenCLDevice) -> None:
    text = "// k.py: /folder/k.py\n// tpk.load, k.py:12\n__kernel void f(__global int *a) {\n  a[0] = unknown;\n}\n"
    with pytest.raises(BuildFailure) as caught:
        build_source(opencl.info, text)
    error = opencl_failure(text, caught.value.log, opencl.info.name)
    assert str(error.location) == "/folder/k.py:12:0"
    assert "unknown" in str(error)


def test_memory_that_was_freed_is_refused(opencl: OpenCLDevice) -> None:
    x = DeviceArray.zeros(100, "float32", opencl)
    address = x.data_ptr()
    del x
    with pytest.raises(InvalidPointer, match="launch of add_one"):
        add_one[(2,)](Address(address), 100, B=64)


class Address:
    """A pointer to float32 at an address."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.dtype = "float32"

    def data_ptr(self) -> int:
        return self.address


def test_vectors_of_other_sizes_are_refused(opencl: OpenCLDevice) -> None:
    from triton.runtime import driver

    backend: Any = OpenCLBackend(driver.active.get_current_target())
    with pytest.raises(OptionError, match="vector_bytes is 48"):
        backend.pipeline(backend.parse_options({"vector_bytes": 48}))


def test_garbage_that_is_collected_within_a_copy(
    opencl: OpenCLDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Freeing an array waits for its copies, also where the collector does that in the middle of another copy."""
    data = np.arange(1000, dtype=np.float32)
    kept = DeviceArray.zeros(1000, "float32", opencl)
    state = streams.state

    def collecting(library: Any, event: int) -> int:
        gc.collect()
        return state(library, event)

    monkeypatch.setattr(streams, "state", collecting)
    for _ in range(3):
        cycle: list[Any] = [DeviceArray.zeros(10, "float32", opencl)]
        cycle.append(cycle)
        del cycle
        opencl.memcpy_htod(kept.data_ptr(), data)
    np.testing.assert_array_equal(kept.numpy(), data)


def test_a_device_by_name(opencl: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPK_OPENCL_DEVICE", opencl.info.name[:8])
    assert opencl.info in device_infos()
    monkeypatch.setenv("TPK_OPENCL_DEVICE", "no such device")
    with pytest.raises(
        Exception, match="'no such device', which no OpenCL device has in its name; there are"
    ):
        device_infos()


@triton.jit
def gammas(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(O + i, libdevice.lgamma(tl.load(X + i)))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_function_of_the_language(opencl: OpenCLDevice, kind: str) -> None:
    x = np.arange(1, 65, dtype=kind) / 3
    out = DeviceArray.zeros(64, kind, opencl)
    gammas[(1,)](DeviceArray.from_numpy(x, opencl), out, B=64)
    expected = [math.lgamma(value) for value in x.astype(float)]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-5)


@triton.jit
def by_number(X, O, B: tl.constexpr):
    i = tl.arange(0, B)
    place = (X.to(tl.int64) + i * 4).to(tl.pointer_type(tl.float32))
    tl.store(O + i, tl.load(place))


def test_an_address_that_was_a_number(opencl: OpenCLDevice) -> None:
    """It has no object that it is an offset into, which OpenCL C's compilers may otherwise count on."""
    x, out = np.arange(64, dtype=np.float32), DeviceArray.zeros(64, "float32", opencl)
    by_number[(1,)](DeviceArray.from_numpy(x, opencl), out, B=64)
    np.testing.assert_array_equal(out.numpy(), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_vectors_are_exact(opencl: OpenCLDevice, dtype: str) -> None:
    numbers = np.array(
        [0, 1, -1.5, 2.2e-308, 1e-30, 1.7e308, -1e30, np.inf, np.nan, 3, 7.25, 2**53, 0.1, 5e-324, 1e10, -7]
    )
    with np.errstate(all="ignore"):
        x, y = (each.ravel().astype(dtype) for each in np.meshgrid(numbers, numbers))
        exact = np.fmod(x, y)
    result = DeviceArray.from_numpy(x, opencl)
    remainders[(1,)](result, DeviceArray.from_numpy(y, opencl), B=256)
    np.testing.assert_array_equal(result.numpy(), exact)
