"""The CPU compiler: TTIR, the structured form, loops, LLVM IR, object code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit import __version__, compiler
from triton_porting_kit.compiler import (
    FP8_TYPES,
    CpuTarget,
    KernelOptions,
    Pipeline,
    PipelineBackend,
    cpu_pipeline,
    source_digest,
    toolchain_versions,
)
from triton_porting_kit.errors import OptionError

CHECKS = ("", "memory")
"""Values of the option ``check``, and of ``TPK_CHECK``."""
FORMS = ("", "linalg")
"""Values of the option ``form``, and of ``TPK_FORM``: what the structured form is lowered by way of."""


class CPUBackend(PipelineBackend):
    """Compiles Triton kernels to relocatable objects for a CPU, the host by default."""

    name = "cpu"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "cpu")

    @classmethod
    def isa_levels(cls) -> Mapping[str, Mapping[str, str]]:
        return {name: level.options() for name, level in compiler.ISA_LEVELS.items() if not level.missing()}

    def default_options(self) -> Mapping[str, Any]:
        host = CpuTarget.host()
        return {
            **host.options(),
            "num_warps": 1,  # a program is one thread
            "supported_fp8_dtypes": FP8_TYPES,
            "deprecated_fp8_dot_operand_dtypes": (),
            "default_dot_input_precision": "ieee",
            "allowed_dot_input_precisions": ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"),
            "check": os.environ.get("TPK_CHECK", ""),
            "form": os.environ.get("TPK_FORM", ""),
        }

    def parse_options(self, options: dict[str, Any]) -> KernelOptions:
        """Triton also passes the kernel's own keyword arguments.

        One called `check` that is not a string is not the option.
        """
        given = {name: value for name, value in options.items() if name != "check" or isinstance(value, str)}
        parsed = super().parse_options(given)
        if parsed.check not in CHECKS:
            raise OptionError(
                f"check is {parsed.check!r}",
                remedy="give 'memory', or nothing, as the option of the launch or in TPK_CHECK",
            )
        if parsed.form not in FORMS:
            raise OptionError(
                f"form is {parsed.form!r}",
                remedy="give 'linalg', or nothing, as the option of the launch or in TPK_FORM",
            )
        CpuTarget.from_options(vars(parsed))  # refuses caches that cannot be read
        return parsed

    def pipeline(self, options: Any) -> Pipeline:
        if options.form == "linalg":
            return compiler.linalg_pipeline(CpuTarget.from_options(vars(options)))
        return cpu_pipeline(**self.lowering_options(vars(options)))

    @staticmethod
    def lowering_options(options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `cpu_pipeline` and `crash_location`, from a kernel's options or from its metadata."""
        return {
            "target": CpuTarget.from_options(options),
            "fuse_multiply_add": options["enable_fp_fusion"],
            "threads": options["num_warps"] * options["warp_size"],  # a warp of a CPU is one thread
            "check_memory": options["check"] == "memory",
            "notes_program": True,
            "runs_alone": True,
        }

    @classmethod
    def libdevice(cls) -> ModuleType:
        from triton_porting_kit.backends.cpu import libdevice

        return libdevice

    def version(self) -> str:
        digests = (source_digest(f"triton_porting_kit.{package}") for package in ("compiler", "backends.cpu"))
        return "-".join((__version__, *digests, toolchain_versions()))
