"""The AMD compiler: TTIR, TTGIR, LLVM IR, assembly, code object, through Triton's own passes."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from triton.backends.compiler import GPUTarget

from triton_porting_kit import __version__
from triton_porting_kit.backends.amd import options as amd_options
from triton_porting_kit.backends.amd import stages
from triton_porting_kit.backends.amd.targets import architecture, known_architectures
from triton_porting_kit.compiler import KernelOptions, Pipeline, PipelineBackend, source_digest
from triton_porting_kit.toolchain import amd_codegen


class AMDBackend(PipelineBackend):
    """Compiles Triton kernels to code objects ("hsaco") for AMD's GPUs."""

    name = "amdgpu"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "amdgpu")

    @classmethod
    def architectures(cls) -> tuple[str, ...]:
        return known_architectures()

    @classmethod
    def target_of(cls, arch: str) -> GPUTarget:
        return GPUTarget(cls.name, arch, architecture(arch).warp_size)

    def default_options(self) -> Mapping[str, Any]:
        return amd_options.default_options(architecture(self.target.arch))

    def parse_options(self, options: dict[str, Any]) -> KernelOptions:
        """Options of one compilation. ``arch``, or ``TRITON_OVERRIDE_ARCH``, compiles for another than the device's."""
        arch = architecture(options.get("arch") or amd_codegen.arch_override() or self.target.arch)
        if arch.name != self.target.arch:
            return type(self)(self.target_of(arch.name)).parse_options({**options, "arch": arch.name})
        parsed = super().parse_options(options)
        amd_options.complete(parsed, arch)
        return parsed

    def pipeline(self, options: Any) -> Pipeline:
        return stages.pipeline(options)

    def load_dialects(self, context: Any) -> None:
        amd_codegen.load_dialects(context)

    def libdevice(self) -> ModuleType:
        from triton.language.extra.hip import libdevice

        return libdevice  # type: ignore[no-any-return]

    def version(self) -> str:
        digests = (source_digest(f"triton_porting_kit.{package}") for package in ("compiler", "backends.amd"))
        return "-".join((__version__, *digests, amd_codegen.revision()))
