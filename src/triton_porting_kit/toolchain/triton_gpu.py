"""Triton's own GPU passes, by name, and the LLVM modules that libtriton builds of a kernel.

A pass is named by its place in libtriton: ``ttgpuir.coalesce`` is ``passes.ttgpuir.add_coalesce``, and
``amd.ttgpuir.accelerate_matmul`` is ``amd.passes.ttgpuir.add_accelerate_matmul``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton._C import libtriton
from triton._C.libtriton import ir, llvm

from triton_porting_kit.errors import CompilationError, ToolchainError
from triton_porting_kit.toolchain import diagnostics


@dataclass(frozen=True)
class GpuPass:
    """A pass of libtriton by name, with the arguments of its constructor after the pass manager."""

    name: str
    arguments: tuple[Any, ...] = ()


def run_passes(module: Any, passes: Sequence[GpuPass], stage: str) -> None:
    """Run passes on a Triton module in place. `stage` is the name in errors and in MLIR's dumps.

    Raises `ToolchainError` for a pass that this release of Triton lacks, or whose arguments it does not take, and
    `CompilationError` with the kernel's line and MLIR's message if a pass fails.
    """
    manager = _manager(module, passes)
    before = str(module)
    try:
        manager.run(module, f"make_{stage}")
    except RuntimeError as error:
        raise _explained(module.context, before, passes, stage, error) from error


def _manager(module: Any, passes: Iterable[GpuPass]) -> Any:
    manager = ir.pass_manager(module.context)
    manager.enable_debug()  # enables MLIR_ENABLE_DUMP and MLIR_ENABLE_TIMING
    for row in passes:
        try:
            _adder(row.name)(manager, *row.arguments)
        except TypeError as error:
            raise ToolchainError(
                f"Triton {triton.__version__} does not take {row.arguments} for the pass {row.name}: {error}"
            ) from error
    return manager


def _explained(
    context: Any, text: str, passes: Sequence[GpuPass], stage: str, error: Exception
) -> CompilationError:
    """Run the passes again on the module on which they failed, for MLIR's message."""

    def again() -> None:
        module = _parse(text, context)
        _manager(module, passes).run(module, f"make_{stage}")

    found = diagnostics.first_error(diagnostics.stderr_of(again))
    if found is None:
        return CompilationError(
            f"Triton's passes fail in the stage {stage}: {error}",
            remedy="MLIR_ENABLE_DUMP=1 prints the module before each pass",
        )
    return CompilationError(
        f"Triton's passes fail in the stage {stage}: {found.message}",
        operation=found.operation,
        location=found.place,
        remedy="write this line without what the target lacks; MLIR_ENABLE_DUMP=1 prints the module before each pass",
    )


def _adder(name: str) -> Callable[..., None]:
    *where, short = name.split(".")
    vendor = getattr(libtriton, where[0], None) if len(where) > 1 else None
    group: Any = libtriton if vendor is None else vendor
    for part in ("passes", *(where if vendor is None else where[1:])):
        group = getattr(group, part, None)
    add = getattr(group, f"add_{short}", None) or getattr(group, short, None)
    if add is None:
        raise ToolchainError(f"Triton {triton.__version__} has no pass {name}")
    return add  # type: ignore[no-any-return]


def parse_module(text: str, load_dialects: Callable[[Any], None]) -> Any:
    """The Triton module of a text, TTIR or TTGIR. `load_dialects` loads the vendor's dialects into a context.

    Raises `CompilationError` with MLIR's message if it does not parse.
    """
    context = ir.context()
    ir.load_dialects(context)
    load_dialects(context)
    try:
        return _parse(text, context)
    except RuntimeError as error:
        found = diagnostics.first_error(diagnostics.stderr_of(lambda: _parse(text, context)))
        said = str(error) if found is None else found.message
        where = "" if found is None or found.place is None else f", line {found.place.line}"
        raise CompilationError(
            f"the text is not a module of Triton's{where}: {said}",
            operation=None if found is None else found.operation,
            remedy="correct that text",
        ) from error


def _parse(text: str, context: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="tpk-") as folder:
        file = Path(folder, "module.mlir")
        file.write_text(text)
        module = ir.parse_mlir_module(str(file), context)
    module.context = context
    return module


def argument_types(module: Any) -> tuple[str, ...]:
    """Types of the kernel's arguments, as Triton's binding prints them: ``*fp32``, ``!tt.tensordesc<16x16xf16>``."""
    return tuple(module.get_function_signature(module.get_function(module.get_entry_func_name())))


def descriptor_metadata(module: Any) -> Any:
    """The metadata that the launcher needs for tensor descriptors among a kernel's arguments."""
    return module.get_tensordesc_metadata()


class LlvmModule:
    """A module of libtriton's LLVM, which has targets and passes that others lack. It prints as LLVM IR."""

    def __init__(self, module: Any) -> None:
        """`module` is a Triton module lowered to the LLVM dialect.

        Raises `CompilationError` if it cannot be translated, or has no kernel.
        """
        llvm.init_targets()
        self._context = llvm.context()
        try:
            self.handle = llvm.to_module(module, self._context)
        except RuntimeError as error:
            raise CompilationError(
                f"the module cannot be translated to LLVM IR: {error}",
                remedy="give a module that the backend's passes have lowered to the LLVM dialect",
            ) from error
        kernels = [function for function in self.definitions() if function.is_external_linkage()]
        if not kernels:
            raise CompilationError(
                "the module holds no kernel: none of its functions has external linkage",
                remedy="let the kernel's function have external linkage",
            )
        self.kernel = kernels[0]
        """The kernel: libtriton's function, which takes attributes and a calling convention."""

    def definitions(self) -> list[Any]:
        """The functions with a body."""
        return [function for function in self.handle.get_functions() if not function.is_declaration()]

    def set_attribute(self, name: str, value: str = "") -> None:
        """Set an attribute of the kernel, replacing one of the same name."""
        self.kernel.remove_fn_attr(name)
        self.kernel.add_fn_attr(name, value)

    def link(self, paths: Sequence[str]) -> None:
        """Link bitcode files. Raises `CompilationError` if one cannot be read."""
        if not paths:
            return
        try:
            llvm.link_extern_libs(self.handle, list(paths))
        except RuntimeError as error:
            raise CompilationError(
                f"linking {', '.join(paths)} fails: {error}", remedy="correct the option extern_libs"
            ) from error

    def optimize(
        self, arch: str, *, features: str, flags: Sequence[str], fuse: bool, vector_combine: bool
    ) -> None:
        """Run LLVM's O3 pipeline for a processor. `fuse`: multiplications and additions may be fused.

        `vector_combine`: False disables the pass of that name, if the release can.
        """
        names = llvm.optimize_module.__doc__ or ""
        more = (
            {}
            if vector_combine or "disable_vector_combine" not in names
            else {"disable_vector_combine": True}
        )
        llvm.optimize_module(self.handle, llvm.OPTIMIZE_O3, arch, features, list(flags), fuse, **more)

    def set_layout(self, triple: str, arch: str, *, features: str, flags: Sequence[str]) -> None:
        """Set the module's data layout to that of a processor."""
        takes_flags = "flags" in (llvm.attach_datalayout.__doc__ or "")
        more = [list(flags)] if takes_flags else []
        llvm.attach_datalayout(self.handle, triple, arch, features, *more)

    def __str__(self) -> str:
        return str(self.handle)
