"""Clang's front end as a judge of OpenCL C, where no OpenCL is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from triton_porting_kit.compiler.cpp.dialects import OPENCL
from triton_porting_kit.compiler.cpp.module import emit
from triton_porting_kit.errors import CompilationError

EXTENSIONS = "+cl_khr_fp64,+cl_khr_int64_base_atomics,+cl_khr_int64_extended_atomics"
VERSIONS = ("CL1.2", "CL3.0")


@dataclass
class Seen:
    """What became of the loops that were compiled: their texts in OpenCL C, and the errors of those without one."""

    texts: list[str] = field(default_factory=list)
    refusals: list[CompilationError] = field(default_factory=list)

    def look(self, loops: object) -> None:
        """Write loops in OpenCL C."""
        try:
            self.texts.append(emit(loops, OPENCL))
        except CompilationError as error:
            self.refusals.append(error)

    def clear(self) -> None:
        """Forget what was seen."""
        self.texts.clear()
        self.refusals.clear()


def compile_opencl(texts: Sequence[str], folder: Path, versions: Sequence[str] = VERSIONS) -> None:
    """Read texts as each version of OpenCL C, with warnings as errors."""
    paths = [folder / f"kernel{number}.cl" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    for version in versions if texts else ():
        command = [
            "clang", "-x", "cl", f"-cl-std={version}", "-Xclang", f"-cl-ext={EXTENSIONS}", "-fsyntax-only",
            "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-Wno-unused", "-Wno-unused-parameter",
            "-Wno-unused-but-set-variable", *map(str, paths),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
