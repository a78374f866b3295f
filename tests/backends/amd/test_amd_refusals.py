"""What cannot be compiled is refused by type, with the kernel's line and what to do."""

from __future__ import annotations

import pickle

import amd_kernels
import pytest
from amd_compiling import compiled
from amd_kernels import matmul_arguments
from triton.backends.compiler import GPUTarget
from triton.runtime.errors import OutOfResources

from triton_porting_kit.backends.amd.compiler import AMDBackend
from triton_porting_kit.errors import CompilationError, ResourceError


def test_too_much_local_memory() -> None:
    arguments = matmul_arguments("fp32", size=256, depth=256)
    with pytest.raises(
        ResourceError, match=r"bytes of local memory \(LDS\) on gfx942, and there are 65536"
    ) as found:
        compiled("wide_tiles", arguments=arguments, num_warps=16)
    assert isinstance(found.value, OutOfResources)  # what makes Triton's autotuner try the next configuration
    assert found.value.required > found.value.limit == 65536
    assert "make the tiles smaller" in str(found.value)
    again = pickle.loads(pickle.dumps(found.value))
    assert str(again) == str(found.value)


def test_assembly_for_another_chip() -> None:
    with pytest.raises(
        CompilationError, match=r"amd_kernels.py:\d+:\d+: the assembly for gfx942 is not valid"
    ) as found:
        compiled("foreign_assembly")
    assert "mov.b32" in str(found.value)
    assert found.value.location is not None
    assert found.value.location.file == amd_kernels.__file__


def test_a_pass_that_fails() -> None:
    """NVIDIA's operations are known to Triton, and to none of AMD's passes."""
    backend = AMDBackend(GPUTarget("amdgpu", "gfx942", 64))
    text = """
      #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
      module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942",
                         "ttg.threads-per-warp" = 64 : i32} {
        tt.func public @kernel(%p: !tt.ptr<f32>) {
          "ttng.fence_async_shared"() {bCluster = false} : () -> () loc("kernel.py":7:3)
          tt.return
        }
      }
    """
    with pytest.raises(CompilationError) as found:
        backend.pipeline(backend.parse_options({})).after("ttgir").run(text, {})
    assert found.value.location is not None
    assert (found.value.location.file, found.value.location.line) == ("kernel.py", 7)
    assert found.value.operation == "ttng.fence_async_shared"


def test_gluon_kernels_are_refused() -> None:
    from triton.backends.compiler import Language

    backend = AMDBackend(GPUTarget("amdgpu", "gfx942", 64))
    with pytest.raises(CompilationError, match="not Gluon"):
        backend.add_stages({}, backend.parse_options({}), Language.GLUON)
