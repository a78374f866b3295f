"""The CPU compiler: TTIR, the structured form, loops, LLVM IR, object code."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit import __version__
from triton_porting_kit.compiler import (
    CpuTarget,
    Pipeline,
    PipelineBackend,
    cpu_pipeline,
    source_digest,
    toolchain_versions,
)


class CPUBackend(PipelineBackend):
    """Compiles Triton kernels to relocatable objects for a CPU, the host by default."""

    name = "cpu"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "cpu")

    def default_options(self) -> Mapping[str, Any]:
        host = CpuTarget.host()
        return {
            "cpu_triple": host.triple,
            "cpu_name": host.cpu,
            "cpu_features": host.feature_string,
            "num_warps": 1,  # a program is one thread
            "supported_fp8_dtypes": ("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16"),
            "deprecated_fp8_dot_operand_dtypes": (),
            "default_dot_input_precision": "ieee",
            "allowed_dot_input_precisions": ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"),
        }

    def pipeline(self, options: Any) -> Pipeline:
        target = CpuTarget.of(options.cpu_triple, options.cpu_name, options.cpu_features)
        # A warp of a CPU is one thread.
        return cpu_pipeline(
            target, fuse_multiply_add=options.enable_fp_fusion, threads=options.num_warps * options.warp_size
        )

    def libdevice(self) -> ModuleType:
        from triton_porting_kit.backends.cpu import libdevice

        return libdevice

    def version(self) -> str:
        digests = (source_digest(f"triton_porting_kit.{package}") for package in ("compiler", "backends.cpu"))
        return "-".join((__version__, *digests, toolchain_versions()))
