"""Lowering Triton IR: from TTIR, through the structured form and loops, to object code."""

from triton_porting_kit.abi.elements import FP8_TYPES
from triton_porting_kit.binaries.shared_object import link_shared_object
from triton_porting_kit.compiler import libdevice
from triton_porting_kit.compiler.backend import PipelineBackend
from triton_porting_kit.compiler.cpp.build import opencl_failure
from triton_porting_kit.compiler.cpp.header import CppHeader
from triton_porting_kit.compiler.cpp.opencl import kernel_name as opencl_kernel_name
from triton_porting_kit.compiler.cpp.opencl import symbols as opencl_symbols
from triton_porting_kit.compiler.cpp.stages import C_COMMAND, CPP_COMMAND, cpp_pipeline, cpp_stages
from triton_porting_kit.compiler.cpu import cpu_pipeline
from triton_porting_kit.compiler.crashes import crash_location, pointer_arguments
from triton_porting_kit.compiler.external import run_tool, tool_version
from triton_porting_kit.compiler.fitting import Fit, fit, fits
from triton_porting_kit.compiler.isa_levels import ISA_LEVELS, IsaLevel
from triton_porting_kit.compiler.linalg.stages import compile_linalg, linalg_pipeline, linalg_stage
from triton_porting_kit.compiler.npu import npu_cpp_command, npu_cpp_pipeline, npu_pipeline
from triton_porting_kit.compiler.options import KernelOptions
from triton_porting_kit.compiler.pipeline import Pipeline, Stage
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.compiler.versions import source_digest, toolchain_versions

__all__ = [
    "CPP_COMMAND",
    "C_COMMAND",
    "FP8_TYPES",
    "ISA_LEVELS",
    "CppHeader",
    "CpuTarget",
    "Fit",
    "IsaLevel",
    "KernelOptions",
    "Pipeline",
    "PipelineBackend",
    "Stage",
    "compile_linalg",
    "cpp_pipeline",
    "cpp_stages",
    "cpu_pipeline",
    "crash_location",
    "fit",
    "fits",
    "libdevice",
    "linalg_pipeline",
    "linalg_stage",
    "link_shared_object",
    "npu_cpp_command",
    "npu_cpp_pipeline",
    "npu_pipeline",
    "opencl_failure",
    "opencl_kernel_name",
    "opencl_symbols",
    "pointer_arguments",
    "run_tool",
    "source_digest",
    "tool_version",
    "toolchain_versions",
]
