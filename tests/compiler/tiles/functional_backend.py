"""A backend for a chip without a chip: the object runs on the host's memory, with the intrinsics as plain functions."""

from __future__ import annotations

import ctypes
import functools
import platform
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from triton_porting_kit import abi, chips
from triton_porting_kit.abi.npu import INTRINSICS
from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.compiler import Pipeline
from triton_porting_kit.compiler.npu import npu_pipeline
from triton_porting_kit.driver.host import HostDevice, binary
from triton_porting_kit.launcher import PackedLauncher


@functools.cache
def intrinsics() -> dict[str, int]:
    """The addresses of the intrinsics, compiled once."""
    source = Path(__file__).parent / "native" / "functional.cpp"
    include = Path(abi.__file__).parent / "include"
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "functional.so")
        command = [
            "c++",
            "-std=c++17",
            "-O2",
            "-shared",
            "-fPIC",
            f"-I{include}",
            str(source),
            "-o",
            str(library),
        ]
        subprocess.run(command, check=True)
        loaded = ctypes.CDLL(str(library))
    found = {name: ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value for name in INTRINSICS}
    return {name: address for name, address in found.items() if address}


def compiler(chip: str) -> type[CPUBackend]:
    """A compiler for a chip, whose target's name is ``functional-<chip>``."""

    class FunctionalCompiler(CPUBackend):
        name = f"functional-{chip}"

        @staticmethod
        def supports_target(target: GPUTarget) -> bool:
            return bool(target.backend == f"functional-{chip}")

        def pipeline(self, options: Any) -> Pipeline:
            return npu_pipeline(
                chips.load(chip), fuse_multiply_add=options.enable_fp_fusion, num_stages=options.num_stages
            )

        def version(self) -> str:
            return f"{super().version()}-{chips.load(chip).digest}"

    return FunctionalCompiler


class FunctionalDriver(CPUDriver):
    """Never chosen but by name."""

    chip = ""

    def make_target(self, device: Any) -> GPUTarget:
        return GPUTarget(self.backend_name, platform.machine(), 1)

    def launcher_cls(self, source: Any, metadata: Any) -> PackedLauncher:
        return PackedLauncher(source, metadata, self.device.launch_entry())


@contextmanager
def running_on(chip: str) -> Iterator[HostDevice]:
    """While it is open, Triton compiles for a chip."""
    before = driver.active
    name = f"functional-{chip}"
    kind = type("NamedDriver", (FunctionalDriver,), {"backend_name": name})
    backends[name] = Backend(compiler=compiler(chip), driver=kind)
    imports = binary._imports

    def with_intrinsics(data: bytes) -> dict[str, int]:
        return {**imports(data), **intrinsics()}

    found = kind()
    try:
        with mock.patch.object(binary, "_imports", with_intrinsics):
            driver.set_active(found)
            yield found.device
    finally:
        driver.set_active(before)
        del backends[name]
