"""The front end: compile options, and compiling a kernel without running it."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from typing import Any

from triton._C.libtriton import ir as triton_ir

from triton_porting_kit.errors import CompilationError, ResourceError

from .releases import internal


@functools.cache
@internal
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
    computed = {"extern_libs": (), "debug": False, "num_warps": 4, "num_ctas": 1}
    return defaults | computed | {"max_num_imprecise_acc_default": 0}


@internal
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


def out_of_resources(required: int, limit: int, name: str, remedy: str) -> ResourceError:
    """The error of a kernel that needs more than the chip has, which is Triton's own type, too."""
    return _resource_error()(required, limit, name, remedy)  # type: ignore[no-any-return]


@functools.cache
@internal
def _resource_error() -> Any:
    from triton.runtime.errors import OutOfResources as TritonsOutOfResources

    class OutOfResources(ResourceError, TritonsOutOfResources):  # type: ignore[misc]
        """The chip has not as much of something as the kernel needs."""

        __str__ = Exception.__str__

        def __reduce__(self) -> Any:
            return (out_of_resources, (self.required, self.limit, self.name, self.remedy))

    return OutOfResources


@internal
def front_end_module(
    kernel: Any,
    signature: Mapping[str, Any],
    constants: Mapping[Any, Any],
    attributes: Mapping[tuple[int, ...], Any],
    backend: Any,
    options: Any,
) -> Any:
    """The Triton module of a kernel, before any pass, from types by argument name (``constexpr`` for constants).

    Constants go by name, or by position, as a tuple, within an argument that is a tuple.
    Raises Triton's own ``CompilationError``.
    """
    from triton.compiler import ASTSource

    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    return source.make_ir(backend.target, options, functions, backend.get_module_map(), context)


def definition_line(kernel: Any) -> int:
    """The line of a kernel's ``def``, from which Triton's own error messages count."""
    line = getattr(kernel, "def_file_line_number", None)
    if line is None:  # releases before 3.8 have the line of the first decorator only
        decorators = (i for i, text in enumerate(kernel.raw_src) if re.match(r"\s*def\s", text))
        line = kernel.starting_line_number + next(decorators, 0)
    return int(line)


@internal
def backend_stages(backend: Any, options: Any) -> dict[str, Any]:
    """The stages of any backend, in order: functions of an artefact and the metadata, by name."""
    from triton.backends.compiler import Language

    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, Language.TRITON)
    return stages
