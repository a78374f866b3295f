"""``kernel[grid](...)`` to the stand-in: what HIP is given is what Python was given. No kernel runs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import triton
from drivers import fresh_driver
from hip_kernels import add, every_type, matmul, move, takes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from standin_library import Launch, Standin
from triton.compiler import ASTSource
from triton.runtime.driver import driver as config

from triton_porting_kit.backends.amd.driver import AMDDriver
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import LaunchError

ARCHITECTURES = ("gfx942", "gfx1100")


@pytest.fixture(scope="module")
def driver(standin_library: Standin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AMDDriver]:
    """The AMD backend's driver, active, with a GPU of each of `ARCHITECTURES`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TPK_HIP_LIBRARY", str(standin_library.path))
        patch.setenv("TRITON_DEFAULT_BACKEND", "amdgpu")
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton-cache")))
        standin_library.configure(*ARCHITECTURES)
        made, before = fresh_driver(AMDDriver), config._active
        config.set_active(made)
        yield made
        config._active = before  # `reset_active` would make this backend's the default one for good
        standin_library.disarm()
        for device in made.devices:
            device.synchronize()
            device._native.close()  # type: ignore[attr-defined]
        assert not any(standin_library.live().values())
        assert not standin_library.undefined()
        standin_library.configure("gfx942")


@pytest.fixture(params=["packed", "generated"])
def launches(
    request: pytest.FixtureRequest,
    standin_library: Standin,
    driver: AMDDriver,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], list[Launch]]:
    """The launches since the test began, by either launcher."""
    monkeypatch.setenv("TPK_AMD_LAUNCHER", request.param)
    seen = len(standin_library.launches())

    def since() -> list[Launch]:
        driver.device.synchronize()
        return standin_library.launches(seen)

    return since


def fresh(kernel: Any) -> Any:
    """A kernel that has not been loaded, so that its launcher is made anew."""
    return triton.jit(kernel.fn)


def test_a_kernel_s_launch(driver: AMDDriver, launches: Callable[[], list[Launch]]) -> None:
    arrays = [DeviceArray.from_numpy(np.arange(500, dtype=np.float32), driver.device) for _ in range(3)]
    compiled = fresh(add)[(5, 2)](*arrays, 500, BLOCK=1024, num_warps=8)
    (launch,) = launches()
    assert launch.kernel == compiled.metadata.name == "add"
    assert (launch.grid, launch.block) == ((5, 2, 1), (64 * 8, 1, 1))
    assert (launch.device, launch.stream, launch.wavefront) == (0, 0, 64)
    assert launch.shared_bytes == compiled.metadata.shared == 0
    pointers, (count,), scratch = launch.explicit[:3], launch.explicit[3:4], launch.explicit[4:]
    assert [argument.unsigned for argument in pointers] == [array.data_ptr() for array in arrays]
    assert {argument.kind for argument in pointers} == {"global_buffer"}
    assert all(argument.live for argument in pointers)
    assert (count.unsigned, count.size, count.kind) == (500, 4, "by_value")
    assert [argument.unsigned for argument in scratch] == [0, 0]
    assert launch.passed_bytes == launch.explicit_bytes


def test_types_of_arguments(driver: AMDDriver, launches: Callable[[], list[Launch]]) -> None:
    """Each at its own offset, with its own size, whatever lies between them."""
    place = DeviceArray.zeros(1, "int64", driver.device)
    values = (place, True, -5, 7 << 40, 2.5, (-3, (1 << 63) + 1, place), 1 << 31)
    fresh(every_type)[(1,)](*values, None, 1, LAST=3)
    (launch,) = launches()
    at = place.data_ptr()
    expected = [
        struct.pack("<Q", at), b"\1", struct.pack("<i", -5), struct.pack("<q", 7 << 40), struct.pack("<f", 2.5),
        struct.pack("<i", -3), struct.pack("<Q", (1 << 63) + 1), struct.pack("<Q", at), struct.pack("<q", 1 << 31),
    ]  # fmt: skip
    assert [argument.content for argument in launch.explicit[: len(expected)]] == expected
    assert len(launch.explicit) == len(expected) + 2, "None, 1 and constants are none of the block's"


def test_local_memory_is_asked_for(driver: AMDDriver, launches: Callable[[], list[Launch]]) -> None:
    a = DeviceArray.zeros((64, 64), "float16", driver.device)
    c = DeviceArray.zeros((64, 64), "float32", driver.device)
    compiled = fresh(matmul)[(1,)](a, a, c, BLOCK=64)
    (launch,) = launches()
    assert compiled.metadata.shared > 0
    assert launch.shared_bytes + launch.group_bytes == compiled.metadata.shared


def test_the_current_stream_is_launched_on(driver: AMDDriver, launches: Callable[[], list[Launch]]) -> None:
    array, stream = DeviceArray.zeros(8, "float32", driver.device), driver.device.create_stream()
    kernel = fresh(add)
    with driver.stream(stream):
        kernel[(1,)](array, array, array, 8, BLOCK=8)
    kernel[(1,)](array, array, array, 8, BLOCK=8)
    assert [launch.stream for launch in launches()] == [stream, 0]
    driver.device.destroy_stream(stream)


def test_grids_without_programs_launch_nothing(
    driver: AMDDriver, launches: Callable[[], list[Launch]]
) -> None:
    array = DeviceArray.zeros(8, "float32", driver.device)
    fresh(add)[(2, 0, 3)](array, array, array, 8, BLOCK=8)
    assert launches() == []


def test_a_cooperative_launch(driver: AMDDriver, launches: Callable[[], list[Launch]]) -> None:
    array = DeviceArray.zeros(8, "float32", driver.device)
    kernel = fresh(add)
    kernel[(4,)](array, array, array, 8, BLOCK=8, launch_cooperative_grid=True)
    (launch,) = launches()
    assert launch.cooperative
    assert [argument.unsigned for argument in launch.explicit] == [*[array.data_ptr()] * 3, 8, 0, 0]
    with pytest.raises(LaunchError, match="hipErrorCooperativeLaunchTooLarge"):
        kernel[(1 << 20,)](array, array, array, 8, BLOCK=8, launch_cooperative_grid=True)


def test_a_launch_that_hip_refuses(
    standin_library: Standin, driver: AMDDriver, launches: Callable[[], list[Launch]]
) -> None:
    array = DeviceArray.zeros(8, "float32", driver.device)
    kernel = fresh(add)
    standin_library.arm("hipModuleLaunchKernel:1:hipErrorLaunchOutOfResources")
    message = r"HIP device 0: launch: kernel 'add': hipModuleLaunchKernel failed: hipErrorLaunchOutOfResources \(701\)"
    with pytest.raises(LaunchError, match=message):
        kernel[(1,)](array, array, array, 8, BLOCK=8)
    kernel[(1,)](array, array, array, 8, BLOCK=8)
    assert len(launches()) == 1


def test_every_device_has_its_own_kernels(
    standin_library: Standin, driver: AMDDriver, launches: Callable[[], list[Launch]]
) -> None:
    kernel = fresh(add)
    try:
        for index, (arch, warp) in enumerate(zip(ARCHITECTURES, (64, 32), strict=True)):
            driver.set_current_device(index)
            target = driver.get_current_target()
            assert (target.backend, target.arch, target.warp_size) == ("amdgpu", arch, warp)
            array = DeviceArray.zeros(8, "float32", driver.device)
            kernel[(1,)](array, array, array, 8, BLOCK=8, num_warps=2)
            launch = launches()[-1]
            assert (launch.device, launch.wavefront, launch.block) == (index, warp, (2 * warp, 1, 1))
            assert launch.explicit[0].live
    finally:
        driver.set_current_device(0)


def test_a_tensor_descriptor(driver: AMDDriver, launches: Callable[[], list[Launch]]) -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    array = DeviceArray.zeros((32, 64), "float32", driver.device)
    compiled = fresh(move)[(1,)](TensorDescriptor(array, [32, 64], [64, 1], [16, 16]), array)
    (launch,) = launches()
    numbers = [argument.unsigned for argument in launch.explicit]
    assert numbers[0] == array.data_ptr()
    assert array.data_ptr() in numbers[1:]
    assert [number for number in numbers[1:] if number in (32, 64)][:3] == [32, 64, 64]
    assert compiled.metadata.name == "move"


# --- any signature -----------------------------------------------------------------------------------

INTEGERS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
EXACT = [0.0, -0.0, 1.0, -2.5, 0.15625, 384.0, float("inf")]
"""Numbers that all floating-point types have."""


def scalar(kind: str) -> st.SearchStrategy[tuple[str, Any, bytes]]:
    """A type, a value of it, and the value's bytes."""
    if kind in INTEGERS:
        bits, signed = int(kind[1:]), kind[0] == "i"
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        return st.integers(low, high).map(
            lambda value: (kind, value, struct.pack(f"<{INTEGERS[kind]}", value))
        )
    if kind == "i1":
        return st.booleans().map(lambda value: (kind, value, struct.pack("<?", value)))
    if kind == "*fp32":
        addresses = st.integers(0, (1 << 47) - 1)
        return addresses.map(lambda value: (kind, Pointer(value), struct.pack("<Q", value)))
    to_bytes = {
        "fp16": lambda value: struct.pack("<e", value),
        "bf16": lambda value: struct.pack("<f", value)[2:],
        "fp32": lambda value: struct.pack("<f", value),
        "fp64": lambda value: struct.pack("<d", value),
    }[kind]
    return st.sampled_from(EXACT).map(lambda value: (kind, value, to_bytes(value)))


class Pointer:
    """An argument that only has an address."""

    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address


SCALARS = st.sampled_from([*INTEGERS, "i1", "*fp32", "fp16", "bf16", "fp32", "fp64"]).flatmap(scalar)
TUPLES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=12)


def parts(drawn: Any) -> tuple[Any, Any, list[bytes]]:
    """Of what was drawn: its type, its value, and the bytes of its scalars in order."""
    if isinstance(drawn, tuple):
        kind, value, content = drawn
        return kind, value, [content]
    kinds, values, contents = zip(*map(parts, drawn), strict=True) if drawn else ((), (), ())
    return tuple(kinds), tuple(values), [content for inner in contents for content in inner]


@pytest.mark.filterwarnings("ignore")
@settings(
    max_examples=15,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(TUPLES, max_size=6), st.integers(1, 1 << 20), st.integers(1, 60000))
def test_any_signature(standin_library: Standin, driver: AMDDriver, drawn: Any, x: int, y: int) -> None:
    kind, value, contents = parts(drawn)
    kernel = triton.compile(ASTSource(takes, {"values": kind}), target=driver.get_current_target())
    seen = len(standin_library.launches())
    kernel[(x, y, 1)](value)
    driver.device.synchronize()
    (launch,) = standin_library.launches(seen)
    assert launch.grid == (x, y, 1)
    assert [argument.content for argument in launch.explicit] == [*contents, bytes(8), bytes(8)]
