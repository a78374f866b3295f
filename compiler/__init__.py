"""Lowering Triton IR: from TTIR, through the structured form and loops, to object code."""

from typing import TYPE_CHECKING

from triton_porting_kit.on_demand import names_of

if TYPE_CHECKING:
    from triton_porting_kit.abi.elements import FP8_TYPES
    from triton_porting_kit.binaries.shared_object import link_shared_object
    from triton_porting_kit.compiler import libdevice
    from triton_porting_kit.compiler.backend import PipelineBackend
    from triton_porting_kit.compiler.commands import command_words
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
    "command_words",
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

__getattr__ = names_of(
    __name__,
    {
        "CPP_COMMAND": "compiler.cpp.stages",
        "C_COMMAND": "compiler.cpp.stages",
        "CppHeader": "compiler.cpp.header",
        "CpuTarget": "compiler.target",
        "FP8_TYPES": "abi.elements",
        "Fit": "compiler.fitting",
        "ISA_LEVELS": "compiler.isa_levels",
        "IsaLevel": "compiler.isa_levels",
        "KernelOptions": "compiler.options",
        "Pipeline": "compiler.pipeline",
        "PipelineBackend": "compiler.backend",
        "Stage": "compiler.pipeline",
        "command_words": "compiler.commands",
        "compile_linalg": "compiler.linalg.stages",
        "cpp_pipeline": "compiler.cpp.stages",
        "cpp_stages": "compiler.cpp.stages",
        "cpu_pipeline": "compiler.cpu",
        "crash_location": "compiler.crashes",
        "fit": "compiler.fitting",
        "fits": "compiler.fitting",
        "libdevice": "",
        "linalg_pipeline": "compiler.linalg.stages",
        "linalg_stage": "compiler.linalg.stages",
        "link_shared_object": "binaries.shared_object",
        "npu_cpp_command": "compiler.npu",
        "npu_cpp_pipeline": "compiler.npu",
        "npu_pipeline": "compiler.npu",
        "opencl_failure": "compiler.cpp.build",
        "opencl_kernel_name": "compiler.cpp.opencl:kernel_name",
        "opencl_symbols": "compiler.cpp.opencl:symbols",
        "pointer_arguments": "compiler.crashes",
        "run_tool": "compiler.external",
        "source_digest": "compiler.versions",
        "tool_version": "compiler.external",
        "toolchain_versions": "compiler.versions",
    },
)
