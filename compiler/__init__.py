"""Lowering Triton IR: from TTIR, through the structured form and loops, to object code."""

from triton_porting_kit.compiler import libdevice
from triton_porting_kit.compiler.backend import PipelineBackend
from triton_porting_kit.compiler.cpu import cpu_pipeline
from triton_porting_kit.compiler.options import KernelOptions
from triton_porting_kit.compiler.pipeline import Pipeline, Stage
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.compiler.versions import source_digest, toolchain_versions
from triton_porting_kit.toolchain.shared_object import link_shared_object

__all__ = [
    "CpuTarget",
    "KernelOptions",
    "Pipeline",
    "PipelineBackend",
    "Stage",
    "cpu_pipeline",
    "libdevice",
    "link_shared_object",
    "source_digest",
    "toolchain_versions",
]
