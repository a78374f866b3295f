"""The stages from Triton IR to a code object, for one set of options."""

from __future__ import annotations

from copy import copy
from typing import Any

from triton_porting_kit.backends.amd import conversions, passes, texts
from triton_porting_kit.backends.amd.targets import Architecture, architecture
from triton_porting_kit.binaries import code_object
from triton_porting_kit.compiler import Pipeline, Stage
from triton_porting_kit.compiler.gpu import (
    LlvmModule,
    argument_types,
    descriptor_metadata,
    is_module,
    parse_module,
    run_passes,
)
from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import amd_codegen, compat


def pipeline(options: Any) -> Pipeline:
    """The stages for these options: ``ttir``, ``ttgir``, ``llir``, ``amdgcn``, ``hsaco``."""
    stages = _Stages(options, architecture(options.arch))
    return Pipeline(
        (
            Stage("ttir", stages.ttir),
            Stage("ttgir", stages.ttgir),
            Stage("llir", stages.llir, check=texts.check_llvm),
            Stage("amdgcn", stages.amdgcn, check=texts.check_assembly),
            Stage("hsaco", stages.hsaco, check=stages.check_hsaco),
        )
    )


class _OwnText(str):
    """LLVM IR that this backend has generated, and not a user."""

    __slots__ = ()


class _Stages:
    def __init__(self, options: Any, arch: Architecture) -> None:
        self.options = options
        self.arch = arch
        # LLVM's switches apply to the whole process, so function attributes are used instead where they exist.
        self.flags: list[str] = []
        self.features = ""
        if arch.name == "gfx1250" and options.use_expert_scheduling:
            self.flags = (
                ["amdgpu-anti-hints-for-va-vdst"]
                if compat.amd.schedules_expertly_by_attribute()
                else ["amdgpu-expert-scheduling-mode"]
            )
        if arch.name.startswith("gfx11") and not compat.amd.has_true16():
            self.features = "-real-true16"  # the code generator of these releases does not fully support it

    def _module(self, source: Any) -> Any:
        return source if is_module(source) else parse_module(str(source), amd_codegen.load_dialects)

    def ttir(self, source: Any, metadata: Any) -> Any:
        module = self._module(source)
        text = str(module)
        if (converted := conversions.by_way_of_f32(text, self.arch.name)) != text:
            module = self._module(converted)
        passed = any("tensordesc" in type_ for type_ in argument_types(module))
        if passed or (self.arch.name == "gfx1250" and texts.has_descriptor_beyond_hardware(text)):
            # The launcher passes the parts of a descriptor, whatever the hardware could do with a whole one.
            run_passes(module, passes.select(passes.DESCRIPTORS_AS_POINTERS, self.options), "ttir")
        run_passes(module, passes.select(passes.TTIR, self.options), "ttir")
        return module

    def ttgir(self, source: Any, metadata: Any) -> Any:
        module = self._module(source)
        run_passes(module, passes.select(passes.TTGIR, self._options_for(module)), "ttgir")
        metadata["tensordesc_meta"] = descriptor_metadata(module)
        return module

    def _options_for(self, module: Any) -> Any:
        """The options, without buffer atomics if the kernel has an exchange that makes LLVM abort."""
        if not self.options.use_buffer_atomics or not texts.has_exchange_without_buffers(str(module)):
            return self.options
        options = copy(self.options)
        options.__dict__["use_buffer_atomics"] = False
        return options

    def llir(self, source: Any, metadata: Any) -> _OwnText:
        """The optimised LLVM IR. The module of the previous stage is lowered in place: nothing reads it afterwards."""
        options, module = self.options, self._module(source)
        run_passes(module, passes.select(passes.LLIR, options), "llir")
        local_memory = module.get_int_attr("ttg.shared") or 0
        if local_memory > self.arch.lds_bytes:
            raise compat.out_of_resources(
                local_memory, self.arch.lds_bytes, f"bytes of local memory (LDS) on {self.arch.name}",
                "make the tiles smaller, or give a smaller num_stages",
            )  # fmt: skip
        llvm = LlvmModule(module)
        amd_codegen.prepare_module(llvm, self.arch.name, self.arch.warp_size, self.flags)
        # The module is authoritative: it has more warps than the option says if warps specialise, or if it is a user's.
        counts = (module.get_int_attr(f"ttg.{name}") for name in ("total-num-warps", "num-warps"))
        warps = next(filter(None, counts), options.num_warps)
        self._set_attributes(llvm, warps)
        llvm.set_attribute(texts.LOCAL_MEMORY, str(local_memory))
        if self.arch.name != "gfx1250":
            amd_codegen.preload_arguments(llvm)
        llvm.link([path for name, path in options.extern_libs if amd_codegen.needs_library(llvm, name)])
        if options.use_expert_scheduling and compat.amd.schedules_expertly_by_attribute():
            for function in llvm.definitions():
                function.add_fn_attr("amdgpu-expert-scheduling-mode", "true")
        llvm.optimize(
            self.arch.name, features="", flags=self.flags, fuse=options.enable_fp_fusion,
            vector_combine=compat.amd.combines_vectors(),
        )  # fmt: skip
        amd_codegen.finish_module(llvm, self.arch.name, scalarize_packed=options.scalarize_packed_fops)
        metadata["num_warps"] = warps
        metadata["shared"] = local_memory
        for kind in ("global", "profile"):
            metadata[f"{kind}_scratch_size"] = module.get_int_attr(f"ttg.{kind}_scratch_memory_size") or 0
            metadata[f"{kind}_scratch_align"] = (
                module.get_int_attr(f"ttg.{kind}_scratch_memory_alignment") or 1
            )
        return _OwnText(llvm)

    def _set_attributes(self, llvm: LlvmModule, warps: int) -> None:
        """Set attributes that describe the kernel's launch, before LLVM optimises."""
        options = self.options
        if compat.amd.has_cluster_attribute():
            llvm.set_attribute("amdgpu-cluster-dims", f"{options.num_ctas},1,1")
        llvm.set_attribute("amdgpu-flat-work-group-size", f"1,{warps * self.arch.warp_size}")
        llvm.set_attribute("uniform-work-group-size", "true")
        if options.waves_per_eu:
            llvm.set_attribute("amdgpu-waves-per-eu", f"{options.waves_per_eu},{options.waves_per_eu}")
        if options.iterative_ilp:
            llvm.set_attribute("amdgpu-sched-strategy", "iterative-ilp")
        if options.use_coexec_scheduler and options.num_warps <= 4:
            llvm.set_attribute("amdgpu-sched-strategy", "coexec")
        llvm.set_attribute("denormal-fp-math-f32", "preserve-sign" if options.allow_flush_denorm else "ieee")
        for name, value in options.llvm_fn_attrs:
            llvm.set_attribute(name, value)
        if options.wgp_cu_mode == "cu":
            llvm.kernel.add_fn_target_feature("+cumode")

    def amdgcn(self, source: Any, metadata: Any) -> str:
        llvm_ir = str(source)
        name = metadata["name"] = texts.kernel_of_llvm(llvm_ir)
        emit = amd_codegen.emit_assembly if isinstance(source, _OwnText) else amd_codegen.emit_assembly_apart
        assembly = emit(
            llvm_ir,
            self.arch.name,
            features=self.features,
            flags=self.flags,
            fuse=self.options.enable_fp_fusion,
        )
        size = metadata["shared"] = texts.local_memory_of_llvm(llvm_ir, metadata.get("shared", 0))
        return texts.with_local_memory(assembly, name, size)

    def hsaco(self, source: Any, metadata: Any) -> bytes:
        assembly = str(source)
        name = metadata["name"] = texts.kernel_of_assembly(assembly)
        size = metadata["shared"] = texts.local_memory_of_assembly(assembly, name, metadata.get("shared", 0))
        assembly = texts.with_local_memory(assembly, name, size)
        return amd_codegen.link(amd_codegen.assemble(assembly, self.arch.name, features=self.features))

    def check_hsaco(self, binary: bytes) -> None:
        """Raise `CodeObjectError` or `OptionError` unless a file is a code object of one kernel for the target."""
        found = code_object.read_code_object(binary)
        if found.arch != self.arch.name:
            raise OptionError(
                f"it is for {found.arch}, and this compilation for {self.arch.name}",
                remedy=f"give a code object for {self.arch.name}",
            )
        if len(found.kernels) != 1:
            raise OptionError(
                f"it holds {len(found.kernels)} kernels, and not one",
                remedy="give a code object with one kernel",
            )
