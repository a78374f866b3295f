"""Kernels of the CPU backend that IREE compiles and runs, in the place of the kit's own code.

TPK_IREE is the folder of an environment with `iree-base-compiler` and `iree-base-runtime`; see `sitecustomize`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from triton.runtime.cache import get_cache_manager

from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.compiler import linalg_stage
from triton_porting_kit.launcher import PythonLauncher
from triton_porting_kit.launcher.types import Kind

OPTIONS = (
    # The kernel's programs are the workgroups: IREE must not distribute once more.
    "--iree-llvmcpu-disable-distribution",
    # Numbers keep their types.
    "--iree-input-demote-f64-to-f32=false",
    # A tile may be larger than what IREE's own tiles take.
    "--iree-llvmcpu-fail-on-large-vector=false",
    "--iree-llvmcpu-stack-allocation-limit=8388608",
)
TARGETS = {
    "llvm-cpu": (
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ),
    "rocm": ("--iree-hal-target-device=hip", "--iree-rocm-target=gfx942"),
    "vulkan-spirv": ("--iree-hal-target-device=vulkan", "--iree-vulkan-target=rdna3"),
}


class Refused(Exception):
    """IREE's compiler does not take a kernel; its errors."""


def compiled(text: str, folder: Path, target: str = "llvm-cpu") -> Path:
    """The module that `iree-compile` makes of a kernel in the convention `iree`. Raises `Refused`."""
    path = folder / hashlib.sha256(f"{target}{text}".encode()).hexdigest()[:20]
    made = path.with_suffix(".vmfb")
    if made.exists():
        return made
    path = path.with_suffix(f".{os.getpid()}.mlir")  # other processes may compile it, too
    path.write_text(text)
    new = path.with_suffix(".vmfb")
    program = [Path(os.environ["TPK_IREE"], "bin", "iree-compile"), path, "-o", new]
    done = subprocess.run([*program, *TARGETS[target], *OPTIONS], capture_output=True, text=True, timeout=300)
    if done.returncode:
        new.unlink(missing_ok=True)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        raise Refused("\n".join(line[:400] for line in errors or done.stderr.splitlines()[-3:]))
    new.rename(made)
    return made


class IreeLauncher(PythonLauncher):
    """Launches a kernel by IREE's runtime: copies the memory behind its pointers in and, where it was written, back."""

    def __init__(self, source: Any, metadata: Any, device: Any, folder: Path) -> None:
        super().__init__(source, metadata, self._run)
        cache = get_cache_manager(metadata.hash)
        structured = Path(cache.get_file(f"{metadata.name}.structured")).read_text()
        self._name, self._device = metadata.name, device
        self._path = compiled(str(linalg_stage("iree").run(structured, {})), folder)
        self._function: Any = None

    def _run(self, function: int, grid: Sequence[int], stream: int, block: bytes) -> None:
        import iree.runtime as iree

        self._device.synchronize()
        if self._function is None:
            self._config = iree.Config("local-sync")
            context = iree.SystemContext(config=self._config)
            context.add_vm_module(iree.VmModule.mmap(context.instance, str(self._path)))
            self._function = context.modules.module[self._name]
        given, memories = [], []
        for slot in self.layout.slots:
            bits = int.from_bytes(block[slot.offset : slot.offset + slot.size], "little")
            if slot.kind != Kind.POINTER:
                given.append(bits - (bits >> 63 << 64))
                continue
            memory = self._memory(bits)
            memories.append(memory)
            given.append(iree.asdevicearray(self._config.device, memory.copy()))
        results = self._function(*given, *grid)
        results = [results] if len(memories) == 1 else results
        before = [memory.copy() for memory in memories]
        for memory, old, result in zip(memories, before, results, strict=True):
            new = result.to_host()
            changed = new != old
            memory[changed] = new[changed]

    def _memory(self, address: int) -> Any:
        """The bytes from an address to the end of its allocation."""
        found = self._device.allocation_of(address) if address else None
        if found is None:
            return np.zeros(64, np.int8)
        start, size = found
        count = start + size - address
        return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_int8)), (count,))


def install(folder: Path) -> None:
    """Let the CPU driver launch kernels by IREE, in this process."""
    folder.mkdir(parents=True, exist_ok=True)

    def launcher_cls(self: CPUDriver, source: Any, metadata: Any) -> IreeLauncher:
        return IreeLauncher(source, metadata, self.device, folder)

    CPUDriver.launcher_cls = launcher_cls  # type: ignore[assignment,method-assign]
