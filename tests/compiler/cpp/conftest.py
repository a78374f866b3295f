"""The CPU backend with C++ and the system's compiler in place of LLVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.compiler import CPP_COMMAND, CpuTarget, Pipeline, cpp_pipeline
from triton_porting_kit.conformance.language.source import make_kernel

OBJECT = ("-O1", "-c")
"""A relocatable object, which the host's device runs; little optimised, to be built in little time."""


@pytest.fixture(scope="module")
def through_cpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels are compiled by way of C++; none that was compiled otherwise is used."""
    command = tuple(argument for argument in CPP_COMMAND if argument not in ("-O2", "-shared"))

    def pipeline(self: CPUBackend, options: object) -> Pipeline:
        return cpp_pipeline(CpuTarget.portable(), (command[0], *OBJECT, *command[1:]), binary="obj")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CPUBackend, "pipeline", pipeline)
        patch.setattr(CPUBackend, "version", lambda self: "through-cpp")
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cpp-cache")))
        make_kernel.cache_clear()
        yield
        make_kernel.cache_clear()
