"""The CPU backend with emitted text and the system's compiler in place of LLVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from opencl_clang import Seen
from triton.runtime import JITFunction

from triton_porting_kit import kernels
from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.compiler import C_COMMAND, CPP_COMMAND, CpuTarget, Pipeline, Stage, cpp_pipeline
from triton_porting_kit.conformance.language.source import make_kernel

OBJECT = ("-O1", "-c")
"""A relocatable object, which the host's device runs; little optimised, to be built in little time."""


def _forget_kernels() -> None:
    """Compile kernels anew at their next launch."""
    make_kernel.cache_clear()
    for module in filter(lambda value: isinstance(value, ModuleType), vars(kernels).values()):
        for value in vars(module).values():
            if isinstance(value, JITFunction):
                value.device_caches.clear()


@contextmanager
def _through(dialect: str, command: tuple[str, ...], folder: Path, seen: Seen | None) -> Iterator[None]:
    """Kernels are compiled by way of a dialect; none compiled otherwise is used. `seen` looks at their loops."""
    kept = tuple(argument for argument in command if argument not in ("-O2", "-shared"))

    def look(source: Any, metadata: dict[str, Any]) -> Any:
        if seen is not None:
            seen.look(source)
        return source

    def pipeline(self: CPUBackend, options: object) -> Pipeline:
        full = cpp_pipeline(
            CpuTarget.portable(), (kept[0], *OBJECT, *kept[1:]), binary="obj", dialect=dialect
        )
        return full.insert_after("loops", Stage("seen", look))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CPUBackend, "pipeline", pipeline)
        patch.setattr(CPUBackend, "version", lambda self: f"through-{dialect}")
        patch.setenv("TRITON_CACHE_DIR", str(folder))
        _forget_kernels()
        yield
        _forget_kernels()


@pytest.fixture(scope="module")
def through_cpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels are compiled by way of C++."""
    with _through("cpp", CPP_COMMAND, tmp_path_factory.mktemp("cpp-cache"), None):
        yield


@pytest.fixture(scope="module")
def through_c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Kernels are compiled by way of C. What is seen of each as OpenCL C."""
    seen = Seen()
    with _through("c", C_COMMAND, tmp_path_factory.mktemp("c-cache"), seen):
        yield seen
