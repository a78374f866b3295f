"""Building blocks of a GPU compiler: Triton's own GPU passes, and the LLVM modules that libtriton builds.

>>> from triton_porting_kit.compiler.gpu import GpuPass, run_passes
>>> run_passes(module, [GpuPass("ttgpuir.coalesce"), GpuPass("common.cse")], "ttgir")
"""

from triton_porting_kit.toolchain.compat import is_module
from triton_porting_kit.toolchain.triton_gpu import (
    GpuPass,
    LlvmModule,
    argument_types,
    descriptor_metadata,
    parse_module,
    run_passes,
)

__all__ = [
    "GpuPass",
    "LlvmModule",
    "argument_types",
    "descriptor_metadata",
    "is_module",
    "parse_module",
    "run_passes",
]
