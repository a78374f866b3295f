"""Programs that launch kernels, to be recorded: run as ``python recorded_programs.py NAME``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import InvalidPointer


@triton.jit
def scale_add(x_ptr, y_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x, y = tl.load(x_ptr + offsets, mask=inside), tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x * factor + y, mask=inside)


@triton.jit
def of_pair(pair, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(pair[0] + offsets) + pair[1])


@triton.jit
def of_descriptor(desc, out_ptr, M: tl.constexpr, N: tl.constexpr):
    tile = desc.load([tl.program_id(0) * M, 0])
    offsets = tl.program_id(0) * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + offsets, tile * 2)


@triton.jit
def through_table(table_ptr, out_ptr, BLOCK: tl.constexpr):
    source = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(source + offsets))


@triton.jit
def from_integer(address, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(address.to(tl.pointer_type(tl.float32)) + offsets))


@triton.jit
def increment(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + 1)


@triton.jit
def strided(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets * stride * 16))


@triton.jit
def wild(out_ptr, distance, BLOCK: tl.constexpr):
    tl.store(out_ptr + distance + tl.arange(0, BLOCK), 1.0)


@triton.jit
def positive(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x)
    tl.device_assert(x > 0, "not positive")


@triton.jit
def special(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.device_print("x", offsets)
    x = tl.load(x_ptr + offsets)
    # Routines of one operand, and of four.
    tl.store(
        out_ptr + offsets, tl.extra.libdevice.lgamma(x) + tl.extra.libdevice.norm4d(x, x + 1, x + 2, x + 3)
    )


def device() -> Any:
    return triton.runtime.driver.active.device


def floats(count: int, dtype: Any = np.float32) -> DeviceArray:
    return DeviceArray.from_numpy(np.arange(1, count + 1).astype(dtype), device())


def plain() -> None:
    out = DeviceArray.zeros(1000, "float32", device())
    scale_add[(4,)](floats(1000), floats(1000), out, 1000, 2.5, BLOCK=256)
    assert out.numpy()[3] == 14.0


def aliases() -> None:
    whole = floats(96)
    parts = [DeviceArray(whole._storage, whole.dtype, (32,), (1,), 32 * i) for i in range(3)]
    scale_add[(1,)](*parts, 32, 2.0, BLOCK=32)
    assert whole.numpy()[64] == 35.0


def structures() -> None:
    out = DeviceArray.zeros(32, "float32", device())
    of_pair[(1,)]((floats(32), 7), out, BLOCK=32)
    from triton.tools.tensor_descriptor import TensorDescriptor

    matrix = DeviceArray.from_numpy(np.arange(64, dtype=np.float32).reshape(8, 8), device())
    out = DeviceArray.zeros((8, 8), "float32", device())
    of_descriptor[(2,)](TensorDescriptor.from_tensor(matrix, [4, 8]), out, M=4, N=8)
    assert out.numpy()[7, 7] == 126.0


def torch_tensors() -> None:
    import torch

    base = torch.arange(128, dtype=torch.bfloat16)
    scale_add[(1,)](base[16:48], base[64:96], base[96:128], 32, 0.5, BLOCK=32)
    increment[(1,)](triton.reinterpret(torch.zeros(32, dtype=torch.int8), tl.uint8), BLOCK=32)


def pointers_in_memory() -> None:
    source, out = floats(32), DeviceArray.zeros(32, "float32", device())
    table = DeviceArray.from_numpy(np.array([5, source.data_ptr()], np.int64)[1:], device())
    through_table[(1,)](table, out, BLOCK=32)
    from_integer[(1,)](source.data_ptr(), out, BLOCK=32)
    assert out.numpy()[31] == 32.0


def unknown_memory() -> None:
    """Memory of the host's that the object says nothing about."""

    class Foreign:
        dtype = "float32"
        memory = np.zeros(64 + 16, np.float32)

        def data_ptr(self) -> int:
            return int(self.memory.ctypes.data + -self.memory.ctypes.data % 64)

    increment[(1,)](Foreign(), BLOCK=32)


def unreadable_memory() -> None:
    """As a tensor of the host's is on a device with memory of its own."""
    x = floats(32)

    def refuse(*arguments: Any) -> None:
        raise InvalidPointer("memcpy_dtoh: it is not in a live allocation")

    vars(device())["memcpy_dtoh"] = refuse
    increment[(1,)](x, BLOCK=32)


def hidden_arguments() -> None:
    """A launcher that adds arguments which only it knows, and one that is told them by the caller of its own."""
    from triton_porting_kit.launcher import PackedLauncher

    driver, memory = type(triton.runtime.driver.active), floats(32)

    class Adds:
        def __init__(self, source: Any, metadata: Any, layout: bool) -> None:
            entry = device().launch_entry()
            self.launcher = PackedLauncher(source, metadata, entry, hidden={"scratch": "*i8"})
            if layout:
                self.layout = self.launcher.layout

        def __call__(self, *call: Any) -> None:
            self.launcher(*call, scratch=memory)

    for block, layout in ((32, True), (16, False)):
        driver.launcher_cls = lambda self, source, metadata, layout=layout: Adds(source, metadata, layout)
        increment[(1,)](floats(32), BLOCK=block)


def stream() -> None:
    active = triton.runtime.driver.active
    x = floats(32)
    with active.stream(device().create_stream()):
        for _ in range(3):
            increment[(1,)](x, BLOCK=32)
    device().synchronize()
    assert x.numpy()[0] == 4.0


def wrapping() -> None:
    """A launch whose offsets stay within 32 bits, and one whose do not."""
    x = floats(1024)
    for stride, last in ((2, 992.0 + 1), (2**28 + 1, 496.0 + 1)):
        out = DeviceArray.zeros(32, "float32", device())
        strided[(1,)](x, out, stride, BLOCK=32)
        assert out.numpy()[31] == last


def nothing_to_run() -> None:
    increment[(0,)](floats(32), BLOCK=32)


def crash() -> None:
    increment[(1,)](floats(32), BLOCK=32)
    wild[(1,)](floats(32), 1 << 40, BLOCK=32)


def assertion() -> None:
    values = DeviceArray.from_numpy(np.array([1.0, -1.0] * 16, np.float32), device())
    try:
        positive[(1,)](values, floats(32), BLOCK=32, debug=True)
    except AssertionError:
        return
    raise SystemExit("it should have failed")


def functions() -> None:
    out = DeviceArray.zeros(32, "float32", device())
    special[(1,)](floats(32), out, BLOCK=32)


def large() -> None:
    increment[(1,)](floats(32), BLOCK=32)
    increment[(1,)](floats(1 << 20), BLOCK=32)


PROGRAMS: dict[str, Callable[[], None]] = {
    name: value for name, value in list(globals().items()) if callable(value) and type(value) is type(plain)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
