"""The AMD compiler: TTIR, TTGIR, LLVM IR, assembly, code object, through Triton's own passes."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from triton.backends.compiler import BaseBackend, GPUTarget

from triton_porting_kit import __version__
from triton_porting_kit.backends.amd.targets import architecture, known_architectures
from triton_porting_kit.compiler import KernelOptions, Pipeline, PipelineBackend, source_digest
from triton_porting_kit.toolchain import amd_codegen


class AMDBackend(PipelineBackend):
    """Compiles Triton kernels to code objects ("hsaco") for AMD GPUs."""

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
        from triton_porting_kit.backends.amd import options as amd_options  # not while Triton is imported

        return amd_options.default_options(architecture(self.target.arch))

    def parse_options(self, options: dict[str, Any]) -> KernelOptions:
        """The options of one compilation.

        ``arch``, or ``TRITON_OVERRIDE_ARCH``, selects another architecture than the device's.
        """
        from triton_porting_kit.backends.amd import options as amd_options

        arch = architecture(options.get("arch") or amd_codegen.arch_override() or self.target.arch)
        if arch.name != self.target.arch:
            return type(self)(self.target_of(arch.name)).parse_options({**options, "arch": arch.name})
        parsed = super().parse_options(options)
        amd_options.complete(parsed, arch)
        return parsed

    def pipeline(self, options: Any) -> Pipeline:
        from triton_porting_kit.backends.amd import stages

        return stages.pipeline(options)

    def load_dialects(self, context: Any) -> None:
        amd_codegen.load_dialects(context)

    supports_native_tensor_specialization = False
    """Arguments are specialised by `get_tensor_specialization`, not by Triton's native code."""

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        """``D``: the address is a multiple of 16. ``S``: the memory is small, so that offsets in it fit 32 bits."""
        found = BaseBackend.get_tensor_specialization(arg, **kwargs) or ""
        return found + "S" if amd_codegen.settings()["use_buffer_ops"] and is_small(arg) else found

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        """The attributes of an argument, from the letters of its specialization."""
        hints: list[list[Any]] = BaseBackend.parse_attr(desc)
        return [*hints, ["tt.pointer_range", 32]] if "S" in desc else hints

    @classmethod
    def libdevice(cls) -> ModuleType:
        from triton.language.extra.hip import libdevice

        return libdevice  # type: ignore[no-any-return]

    def version(self) -> str:
        digests = (source_digest(f"triton_porting_kit.{package}") for package in ("compiler", "backends.amd"))
        return "-".join((__version__, *digests, amd_codegen.revision()))


def is_small(arg: Any) -> bool:
    """Whether the memory behind an argument is smaller than 2 GiB.

    An argument may report its size in bytes by `ptr_range()`. For a torch tensor, the whole storage counts, because a
    kernel may access any part of it.
    """
    if hasattr(arg, "ptr_range"):
        size = arg.ptr_range()
    elif hasattr(arg, "untyped_storage"):
        size = arg.untyped_storage().size()
    else:
        return False
    return bool(size < 1 << 31)
