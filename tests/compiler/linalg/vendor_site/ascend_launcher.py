"""Kernels of the CPU backend by way of AscendNPU-IR: what it says of them, or what it makes of them.

Environment: TPK_ASCEND is the folder of an environment with `ascendnpu-ir`, TPK_ASCEND_MODULES of what is compiled.
TPK_ASCEND_RUN=1 launches what its passes make of HIVM; otherwise kernels run as ever, and a line for each kernel and
chip is added to the file `verdicts` there.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ascend_compiler as compiler
from triton.runtime.cache import get_cache_manager

from triton_porting_kit.backends.cpu.driver import CPUDriver
from triton_porting_kit.compiler import linalg_stage
from triton_porting_kit.launcher import PythonLauncher
from triton_porting_kit.launcher.types import Kind


def written(metadata: Any, modules: Path) -> Path:
    """The kernel in the convention `ascend`, in a file that has its content's name."""
    structured = Path(get_cache_manager(metadata.hash).get_file(f"{metadata.name}.structured")).read_text()
    text = str(linalg_stage("ascend").run(structured, {}))
    path = modules / f"{metadata.name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}.mlir"
    path.write_text(text)
    return path


def judge(metadata: Any, modules: Path, programs: Path) -> None:
    """Add what the compiler says of a kernel to the verdicts."""
    try:
        path = written(metadata, modules)
    except Exception as error:  # the convention has no form of it
        verdicts = {chip: str(error).splitlines()[0] for chip in compiler.CHIPS}
    else:
        if path.with_suffix(".judged").exists():
            return
        path.with_suffix(".judged").touch()
        verdicts = {chip: compiler.verdict(programs, path, chip) for chip in compiler.CHIPS}
    with (modules / "verdicts").open("a") as file:
        for chip, verdict in verdicts.items():
            file.write(f"{metadata.name}\t{chip}\t{verdict}\n")


class AscendLauncher(PythonLauncher):
    """Launches what came back from HIVM, one program after the other."""

    def __init__(self, source: Any, metadata: Any, device: Any, modules: Path, programs: Path) -> None:
        super().__init__(source, metadata, self._run)
        self._device = device
        self._library = ctypes.CDLL(str(compiler.library(programs, written(metadata, modules))))
        self._kernel = self._library[metadata.name]

    def _run(self, function: int, grid: Sequence[int], stream: int, block: bytes) -> None:
        self._device.synchronize()
        memory = [ctypes.c_void_p(0), ctypes.c_void_p(0), *map(ctypes.c_int64, (0, 0, 1))]
        arguments: list[Any] = [ctypes.c_int64(0), *memory, *memory]
        for slot in self.layout.slots:
            found = block[slot.offset : slot.offset + slot.size]
            bits = int.from_bytes(found, "little")
            if slot.kind == Kind.POINTER:
                pointer = ctypes.c_void_p(bits)
                arguments += [pointer, pointer, *map(ctypes.c_int64, (0, 1 << 40, 1))]
            elif slot.kind == Kind.FP64:
                arguments.append(ctypes.c_double.from_buffer_copy(found))
            elif slot.kind in (Kind.FP32, Kind.FP16, Kind.BF16):  # in the low bits of a register
                arguments.append(ctypes.c_float.from_buffer_copy(found.ljust(4, b"\0")))
            else:
                arguments.append(ctypes.c_int64(bits))
        arguments += map(ctypes.c_int32, grid)
        for number, _program in enumerate(itertools.product(*map(range, grid))):
            self._library.tpk_set(ctypes.c_long(number))
            self._kernel(*arguments)


def install(modules: Path) -> None:
    """Let the CPU driver judge or launch kernels by AscendNPU-IR, in this process."""
    modules.mkdir(parents=True, exist_ok=True)
    programs = compiler.folder(Path(os.environ["TPK_ASCEND"]))
    own = CPUDriver.launcher_cls

    def launcher_cls(self: CPUDriver, source: Any, metadata: Any) -> Any:
        if os.environ.get("TPK_ASCEND_RUN"):
            return AscendLauncher(source, metadata, self.device, modules, programs)
        judge(metadata, modules, programs)
        return own(self, source, metadata)

    CPUDriver.launcher_cls = launcher_cls  # type: ignore[assignment,method-assign]
