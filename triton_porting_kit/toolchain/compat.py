"""Triton's internals, where they differ by release or are no public interface: used from here only."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from triton._C.libtriton import ir as triton_ir
from triton._C.libtriton import passes as triton_passes

from triton_porting_kit.errors import CompilationError, ToolchainError

_MARK = "llvm.data_layout"


def generic_text(module: Any) -> str:
    """A Triton module as MLIR text in generic form, with locations, that upstream MLIR parses.

    Triton's Python interface prints the pretty form of its dialect only. MLIR prints generically what does
    not verify: so the module gets an attribute that cannot verify, which the text is then rid of. The
    attribute stays on the module, which must not be run through Triton's passes afterwards.
    """
    builder = triton_ir.builder(module.context)
    module.set_attr(_MARK, builder.get_int32_attr(0))
    text = str(module)
    head, found, tail = text.rpartition(f"{_MARK} = 0 : i32")
    if not found:
        raise ToolchainError("this Triton release does not print unverifiable modules in generic form")
    # The attribute is one of several, or the only one.
    if head.endswith("{") and tail.startswith("}"):
        return head[:-1] + tail[1:]
    return head.removesuffix(", ") + (tail if head.endswith(", ") else tail.removeprefix(", "))


def run_passes(module: Any, names: Iterable[str]) -> None:
    """Run Triton passes on a Triton module in place.

    A pass is named by its group and name in libtriton, as ``common.cse`` or ``ttir.combine``.
    Raises `ToolchainError` for one that this release does not have.
    """
    manager = triton_ir.pass_manager(module.context)
    for name in names:
        group, _, short = name.partition(".")
        add = getattr(getattr(triton_passes, group, None), f"add_{short}", None)
        if add is None:
            raise ToolchainError(f"this Triton release has no pass {name}")
        add(manager)
    _run(manager, module)


def _run(manager: Any, module: Any) -> None:
    try:
        manager.run(module, "make_ttir")
    except TypeError:  # older releases take no name of the stage
        manager.run(module)


# --- compile options ---------------------------------------------------------------------------------


@functools.cache
def option_defaults() -> Mapping[str, Any]:
    """Every compile option of Triton's own backends with its default: what the front end may read."""
    from triton.backends.amd.compiler import HIPOptions
    from triton.backends.nvidia.compiler import CUDAOptions

    defaults: dict[str, Any] = {}
    for options in (HIPOptions, CUDAOptions):
        for field in dataclasses.fields(options):
            has_default = field.default is not dataclasses.MISSING
            defaults[field.name] = field.default if has_default else None
    # Computed by those backends after construction.
    return defaults | {"extern_libs": (), "debug": False, "num_warps": 4, "num_ctas": 1}


def fp_fusion(requested: bool | None) -> bool:
    """Whether multiplications and additions may fuse: the option, or what Triton's settings say."""
    from triton import knobs

    language = knobs.language
    if getattr(language, "force_disable_fp_fusion", False):
        return False
    if requested is not None:
        return bool(requested)
    return bool(getattr(language, "default_fp_fusion", True))


def is_gluon(language: Any) -> bool:
    """Whether a kernel was written in Gluon, Triton's layout-level language for GPUs."""
    return getattr(language, "name", "") == "GLUON"


def unsupported_language(backend: str) -> CompilationError:
    return CompilationError(
        f"backend {backend} compiles Triton kernels, not Gluon ones",
        remedy="write the kernel with @triton.jit",
    )


# --- the compile cache -------------------------------------------------------------------------------


def cache_root() -> Path:
    """The folder of Triton's compile cache."""
    from triton import knobs

    return Path(knobs.cache.dir)


def kernel_cache_folder(key: str) -> Path:
    """The folder that holds the artefacts of the kernel with this hash."""
    from triton.runtime.cache import get_cache_manager

    return Path(get_cache_manager(key).cache_dir)


_binary_kinds: set[str] = set()


def register_artefact_kinds(binary: str) -> None:
    """Let ``TRITON_KERNEL_OVERRIDE`` read artefacts of stages that Triton does not know.

    Triton's reader of override files knows the stages of its own backends only and gives None for others.
    """
    from triton.compiler import compiler

    _binary_kinds.add(binary)
    known = compiler.parse
    if getattr(known, "reads_any_stage", False):
        return

    def parse(full_name: str, ext: str, context: Any) -> Any:
        artefact = known(full_name, ext, context)
        if artefact is None:
            path = Path(full_name)
            artefact = path.read_bytes() if ext in _binary_kinds else path.read_text()
        return artefact

    parse.reads_any_stage = True  # type: ignore[attr-defined]
    compiler.parse = parse
