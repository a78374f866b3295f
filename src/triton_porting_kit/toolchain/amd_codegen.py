"""AMD's part of libtriton: its dialects, code generator, assembler, linker and device libraries.

Since 3.9, the code generator and the assembler are in a separate library of Triton's.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import triton
from triton._C.libtriton import amd, llvm

from triton_porting_kit.errors import CompilationError, SourceLocation, ToolchainError
from triton_porting_kit.toolchain import compat, diagnostics
from triton_porting_kit.toolchain.triton_gpu import LlvmModule

CODE_OBJECT_VERSION = 500
"""Code object v5: the version of the hidden arguments that Triton's lowering expects (LLVM AMDGPUUsage)."""

DEVICE_LIBRARIES = ("ocml", "ockl")
"""ROCm's bitcode libraries that come with Triton: mathematics, and queries about the launch."""


def load_dialects(context: Any) -> None:
    """Load AMD's dialects of Triton into a context."""
    amd.load_dialects(context)


def settings() -> dict[str, Any]:
    """Triton's settings for AMD (``knobs.amd``) by name; None if the release lacks one or the user has not set it."""
    from triton import knobs

    names = (
        "use_buffer_ops", "use_buffer_atomics", "buffer_ops_analyze_small_tensor_range", "use_block_pingpong",
        "use_in_thread_transpose", "use_async_copy", "use_coexec_scheduler", "use_expert_scheduling",
        "scalarize_packed_fops",
    )  # fmt: skip
    return {name: getattr(knobs.amd, name, None) for name in names}


def arch_override() -> str | None:
    """The architecture of ``TRITON_OVERRIDE_ARCH``."""
    from triton import knobs

    return knobs.runtime.override_arch or None


def address_sanitizer() -> bool:
    """Whether ``TRITON_ENABLE_ASAN`` asks for AMD's address sanitizer."""
    from triton import knobs

    return bool(knobs.compilation.enable_asan)


def line_info() -> bool:
    """Whether kernels get line tables; ``TRITON_DISABLE_LINE_INFO`` switches them off."""
    from triton import knobs

    return not knobs.compilation.disable_line_info


def has_tensor_copies(arch: str) -> bool:
    """Whether this release of Triton uses the architecture's tile copies by descriptor."""
    supports = getattr(amd, "supports_tdm", None)
    return bool(supports is not None and supports(arch))


def target_triple(arch: str) -> str:
    """LLVM's target triple, which contains the architecture in newer releases."""
    return str(amd.get_target_triple(arch) if hasattr(amd, "get_target_triple") else amd.TARGET_TRIPLE)


def prepare_module(module: LlvmModule, arch: str, warp_size: int, flags: Sequence[str]) -> None:
    """Prepare an LLVM module for an architecture.

    Sets its target, its data layout, the constants that select variants of the device libraries, and the kernel's
    calling convention.
    """
    triple = target_triple(arch)
    if hasattr(amd, "set_target_triple"):
        amd.set_target_triple(module.handle, triple)
    else:
        amd.attach_target_triple(module.handle)
    module.set_layout(triple, arch, features="", flags=flags)
    amd.set_isa_version(module.handle, arch)
    amd.set_abi_version(module.handle, CODE_OBJECT_VERSION)
    constants = {
        "finite_only_opt": False,
        "correctly_rounded_sqrt32": True,
        "unsafe_math_opt": False,
        "wavefrontsize64": warp_size == 64,
    }
    for name, value in constants.items():
        amd.set_bool_control_constant(module.handle, f"__oclc_{name}", value)
    module.kernel.set_calling_conv(amd.CALLING_CONV_AMDGPU_KERNEL)


def preload_arguments(module: LlvmModule) -> None:
    """Request the kernel's arguments in scalar registers at its start, if the firmware supports that."""
    amd.set_all_fn_arg_inreg(module.kernel)


def needs_library(module: LlvmModule, name: str) -> bool:
    """Whether a module calls a function of a device library."""
    return bool(amd.need_extern_lib(module.handle, name))


def finish_module(module: LlvmModule, arch: str, *, scalarize_packed: bool) -> None:
    """Clean up after LLVM's optimisation: drop the metadata of the bitcode libraries, and keep printing out of line.

    If workgroup ids come in fixed registers ("architected SGPRs"), a launch always has all of them. LLVM's conclusions
    from the ids that the kernel requests are then undone.
    """
    triple = (target_triple(arch),) if hasattr(amd, "get_target_triple") else ()
    if amd.has_architected_sgprs(*triple, arch):
        for axis in "xyz":
            module.kernel.remove_fn_attr(f"amdgpu-no-workgroup-id-{axis}")
    if scalarize_packed:
        amd.add_scalarize_packed_fops_llvm_pass(module.kernel)
    amd.cleanup_bitcode_metadata(module.handle)
    amd.disable_print_inline(module.handle)


@functools.cache
def device_libraries() -> tuple[tuple[str, str], ...]:
    """Names and paths of the device libraries. Raises `ToolchainError` if Triton's installation lacks them."""
    folder = Path(triton.__file__).parent / "backends" / "amd" / "lib"
    found = tuple((name, str(folder / f"{name}.bc")) for name in DEVICE_LIBRARIES)
    missing = [path for _, path in found if not Path(path).is_file()]
    if missing:
        raise ToolchainError(f"{', '.join(missing)}: not there; install Triton's wheel again")
    return found


@functools.cache
def revision() -> str:
    """What identifies the code generator in cache keys."""
    if not compat.amd.has_own_code_generator():
        return str(triton.__version__)
    from triton.backends.amd import compiler

    return f"{triton.__version__}-{compiler.get_amd_codegen_revision()}"


def emit_assembly(llvm_ir: str, arch: str, *, features: str, flags: Sequence[str], fuse: bool) -> str:
    """The assembly of LLVM IR. `features` are as in ``-real-true16``; `flags` are LLVM's own, without dashes.

    Raises `CompilationError` with LLVM's message.
    """
    triple = target_triple(arch)
    try:
        if not compat.amd.has_own_code_generator():
            llvm.init_targets()
            more = (
                (False,) if compat.amd.asks_about_addresses() else ()
            )  # keeps the address arithmetic as it is
            return str(
                llvm.translate_to_asm(llvm_ir, triple, arch, features, list(flags), fuse, False, *more)
            )
        from triton.backends.amd import compiler

        return str(
            compiler.compile_amdgpu(
                llvm_ir,
                triple,
                arch,
                features,
                flags=list(flags),
                enable_fp_fusion=fuse,
                disable_optimization=False,
                canonicalize_gep=False,
                disabled_passes="",
                dump_ir=False,
                enable_timing=False,
            )
        )
    except Exception as error:
        raise CompilationError(
            f"LLVM cannot compile the kernel for {arch}: {error}",
            remedy=f"write the kernel without what {arch} lacks; `tpk compile --emit llir` prints its LLVM IR",
        ) from error


_APART = """
import json, sys
from triton_porting_kit.toolchain import amd_codegen
try:
    sys.stdout.write(amd_codegen.emit_assembly(**json.load(sys.stdin)))
except Exception as error:
    sys.exit(f"error: {error.__cause__ or error}")
"""


def emit_assembly_apart(llvm_ir: str, arch: str, *, features: str, flags: Sequence[str], fuse: bool) -> str:
    """`emit_assembly` in a process of its own, for LLVM IR from a user, which may make LLVM abort."""
    given = {"llvm_ir": llvm_ir, "arch": arch, "features": features, "flags": list(flags), "fuse": fuse}
    done = subprocess.run(
        [sys.executable, "-c", _APART], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return done.stdout
    found = diagnostics.first_error(done.stderr)
    said = done.stderr.strip().rpartition("\n")[2] if found is None else found.message
    line = "" if found is None or found.place is None else f", line {found.place.line}"
    raise CompilationError(
        f"LLVM cannot compile the given LLVM IR for {arch}{line}: {said}", remedy="correct that text"
    )


def assemble(assembly: str, arch: str, *, features: str) -> bytes:
    """The object file of an assembly text.

    Raises `CompilationError` with the assembler's message, the line of the assembly, and the kernel's line.
    """
    try:
        return _assemble(assembly, arch, features)
    except Exception as error:
        found = diagnostics.first_error(diagnostics.stderr_of(lambda: _assemble(assembly, arch, features)))
        at = _line_of(assembly, found)
        if found is None or at is None:
            raise CompilationError(
                f"the assembly for {arch} is not valid: {error}", remedy=_other_chip(arch)
            ) from error
        line = assembly.splitlines()[at - 1].strip()
        raise CompilationError(
            f"the assembly for {arch} is not valid: {found.message}, line {at}: {line}",
            location=kernel_line(assembly, at),
            remedy=_other_chip(arch),
        ) from error


def _other_chip(arch: str) -> str:
    return f"check that inline assembly of the kernel, or an edited file, is for {arch} and no other chip"


def _assemble(assembly: str, arch: str, features: str) -> bytes:
    if compat.amd.has_own_code_generator():
        from triton.backends.amd import compiler

        return bytes(compiler.assemble_amdgcn(assembly, arch, features))
    made = bytes(amd.assemble_amdgcn(assembly, arch, features))
    if not made:  # what it has printed is its only message
        raise ValueError("the assembler makes nothing of it")
    return made


def _line_of(assembly: str, found: diagnostics.Diagnosis | None) -> int | None:
    """The 1-based line of an assembler's message. Older assemblers only quote the line."""
    lines = assembly.splitlines()
    if found is None:
        return None
    if found.place is not None:
        return min(found.place.line, len(lines))
    return next((at for at, line in enumerate(lines, 1) if found.line and line.strip() == found.line), None)


_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LINE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")


def kernel_line(assembly: str, line: int) -> SourceLocation | None:
    """The kernel line that a line of its assembly, counted from 1, comes from, by its line table."""
    lines = assembly.splitlines()
    last = next((found for text in reversed(lines[:line]) if (found := _LINE.match(text))), None)
    if last is None:
        return None
    for found in filter(None, map(_FILE.match, lines)):
        if found[1] == last[1]:
            file = str(Path(found[2], found[3])) if found[3] else found[2]
            return SourceLocation(file, int(last[2]), int(last[3]))
    return None


def link(object_file: bytes) -> bytes:
    """Link an object file to a code object ("hsaco"), which the HIP runtime loads."""
    with tempfile.TemporaryDirectory(prefix="tpk-") as folder:
        source, result = Path(folder, "kernel.o"), Path(folder, "kernel.hsaco")
        source.write_bytes(object_file)
        try:
            amd.link_hsaco(str(source), str(result))
            return result.read_bytes()
        except Exception as error:
            raise CompilationError(
                f"the object file cannot be linked: {error}",
                remedy="define the functions that the kernel calls in a library of the option extern_libs",
            ) from error
