"""A backend for the virtual NPU as a chip: Triton's kernels run on it, with all hazards found and its own clock."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "driver" / "virtual"))

import specializations
from chips import Chip, Refused, call

from triton_porting_kit import chips as descriptions
from triton_porting_kit import errors
from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.compiler import Pipeline, Stage, link_shared_object, npu_cpp_pipeline, npu_pipeline
from triton_porting_kit.driver import Device, DeviceArray
from triton_porting_kit.driver.device import DEFAULT_ALIGNMENT, DEFAULT_STREAM
from triton_porting_kit.driver.properties import DeviceProperties
from triton_porting_kit.launcher import PythonLauncher
from triton_porting_kit.toolchain import compat

_NUMBERS = itertools.count()
_ERRORS = {
    "OUT_OF_MEMORY": errors.OutOfMemory,
    "INVALID_POINTER": errors.InvalidPointer,
    "INVALID_MODULE": errors.InvalidModule,
    "INVALID_ARGUMENT": errors.InvalidArgument,
    "DEVICE_LOST": errors.DeviceLost,
}


class VirtualChip(Device):
    """The virtual NPU, by its C API."""

    def __init__(self, chip: str) -> None:
        self.description = descriptions.load(chip)
        self.chip = Chip(description=self.description.text.encode(), memory_bytes=1 << 30)

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            call(name, self.chip.handle, *arguments)
        except Refused as error:
            raise _ERRORS.get(error.status, errors.LaunchError)(error.text) from None

    def _result(self, name: str, *arguments: Any) -> int:
        result = ctypes.c_uint64()
        self._call(name, *arguments, ctypes.byref(result))
        return result.value

    def properties(self) -> DeviceProperties:
        window = self.description.window_bytes
        return DeviceProperties(
            self.description.title, self.description.name, 1 << 30, self.description.cores, window
        )

    def memalloc(self, size: int, alignment: int = DEFAULT_ALIGNMENT) -> int:
        return self._result("alloc", size, alignment)

    def memfree(self, addr: int) -> None:
        self._call("free", addr)

    def memcpy_htod(self, dst: int, src: Any, stream: int = DEFAULT_STREAM) -> None:
        data = memoryview(src).cast("B").tobytes()
        self._call("copy_to_device", stream, dst, data, len(data))

    def memcpy_dtoh(self, dst: Any, src: int, stream: int = DEFAULT_STREAM) -> None:
        view = memoryview(dst).cast("B")
        data = ctypes.create_string_buffer(len(view))
        self._call("copy_to_host", stream, data, src, len(view))
        view[:] = data.raw[: len(view)]

    def memcpy_dtod(self, dst: int, src: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        self._call("copy_on_device", stream, dst, src, size)

    def memset(self, dst: int, value: int, size: int, stream: int = DEFAULT_STREAM) -> None:
        self._call("fill", stream, dst, ctypes.c_uint8(value), size)

    def create_stream(self) -> int:
        return self._result("queue_create")

    def destroy_stream(self, stream: int) -> None:
        self._call("queue_destroy", stream)

    def synchronize(self, stream: int | None = None) -> None:
        if stream is None:
            self._call("synchronize")
        else:
            self._call("queue_synchronize", stream)

    def create_event(self) -> int:
        return self._result("event_create")

    def destroy_event(self, event: int) -> None:
        self._call("event_destroy", event)

    def record_event(self, event: int, stream: int = DEFAULT_STREAM) -> None:
        self._call("event_record", event, stream)

    def wait_event(self, stream: int, event: int) -> None:
        self._call("queue_wait", stream, event)

    def synchronize_event(self, event: int) -> None:
        self._call("event_synchronize", event)

    def elapsed_time(self, start: int, end: int) -> float:
        result = ctypes.c_double()
        self._call("event_elapsed", start, end, ctypes.byref(result))
        return result.value

    def load_module(self, binary: bytes, name: str) -> int:
        return self._result("module_load", binary, len(binary))

    def unload_module(self, module: int) -> None:
        self._call("module_unload", module)

    def get_function(self, module: int, name: str) -> int:
        return self._result("get_symbol", module, name.encode())

    def launch(self, function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
        counts = (ctypes.c_uint32(count) for count in (*grid, 1, 1)[:3])
        self._call("launch", stream, function, *counts, args, len(args))

    def reset(self) -> None:
        self._call("reset")


def put(device: VirtualChip, values: np.ndarray[Any, Any]) -> DeviceArray:
    """A copy of an array on a chip."""
    return DeviceArray.from_numpy(values, device)


def compiler(
    chip: str, change: Callable[[str], str] | None = None, cpp: Mapping[str, Any] | None = None
) -> type[CPUBackend]:
    """A compiler for a chip, by its name or the path of its description, whose target's name is ``chip-<name>``.

    `change` is applied to the stage ``placed``. With `cpp`, kernels are compiled by C++; it holds parameters of
    `npu_cpp_pipeline`.
    """
    number = next(_NUMBERS)

    class ChipCompiler(CPUBackend):
        name = f"chip-{Path(chip).stem}"

        @staticmethod
        def supports_target(target: GPUTarget) -> bool:
            return bool(target.backend == f"chip-{Path(chip).stem}")

        def pipeline(self, options: Any) -> Pipeline:
            if cpp is not None:
                return npu_cpp_pipeline(descriptions.load(chip), num_stages=options.num_stages, **cpp)
            lowering = npu_pipeline(
                descriptions.load(chip),
                fuse_multiply_add=options.enable_fp_fusion,
                num_stages=options.num_stages,
            )
            emit, placed = lowering.stages[-1], lowering.stages[lowering.index("placed")]

            def changed(source: Any, metadata: Any) -> Any:
                artefact = placed.run(source, metadata)
                return artefact if change is None else change(str(artefact))

            def link(source: Any, metadata: Any) -> bytes:
                return link_shared_object(emit.run(source, metadata), f"{metadata['name']}.so")

            return lowering.replace("placed", Stage("placed", changed)).replace(emit.name, Stage("so", link))

        def version(self) -> str:
            changes = "" if change is None and cpp is None else f"-{os.getpid()}-{number}"
            return f"{super().version()}-{descriptions.load(chip).digest}{changes}"

    return ChipCompiler


@contextmanager
def running_on(
    chip: str, change: Callable[[str], str] | None = None, cpp: Mapping[str, Any] | None = None
) -> Iterator[VirtualChip]:
    """While it is open, Triton compiles for a chip, and runs kernels on it."""
    name = f"chip-{Path(chip).stem}"

    class ChipDriver(CPUDriver):
        backend_name = name

        def make_device(self) -> Device:
            return VirtualChip(chip)

        def make_target(self, device: Device) -> GPUTarget:
            return GPUTarget(name, chip, 1)

        def launcher_cls(self, source: Any, metadata: Any) -> Any:
            return PythonLauncher(source, metadata, self.device.launch)

    before = driver.active
    backends[name] = Backend(compiler=compiler(chip, change, cpp), driver=ChipDriver)
    found = ChipDriver()
    specializations.forget()
    try:
        driver.set_active(found)
        yield found.device  # type: ignore[misc]
    finally:
        specializations.forget()
        compat.forget_loaded_kernels()  # they are this device's
        driver.set_active(before)
        del backends[name]
