"""Modules of Triton: their text, what they hold, and the passes that run on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from triton._C.libtriton import ir as triton_ir
from triton._C.libtriton import passes as triton_passes

from triton_porting_kit.errors import ToolchainError

from .releases import internal

_MARK = "llvm.data_layout"


@internal
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


def is_module(artefact: Any) -> bool:
    """Whether an artefact is a Triton module, and not the text of one."""
    return isinstance(artefact, triton_ir.module)


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a Triton module holds, as far as it decides which passes have something to do there."""

    operations: frozenset[str]
    """Names of the operations that occur."""
    has_descriptors: bool
    has_unroll_hints: bool
    """Whether a loop says how often it is unrolled, or may say so where a release does not tell."""


@internal
def contents(module: Any) -> Contents:
    """Look through a Triton module."""
    names: set[str] = set()
    loops: list[Any] = []

    def visit(operation: Any) -> None:
        name = operation.get_name()
        names.add(name)
        if name == "scf.for":
            loops.append(operation)

    module.walk(visit)
    # A kernel takes descriptors as arguments, or makes them: then operations are named after them.
    kernel = module.get_entry_func_name()
    arguments = module.get_function_signature(module.get_function(kernel)) if kernel else ()
    return Contents(
        frozenset(names),
        any("descriptor" in name for name in names) or any("tensordesc" in kind for kind in arguments),
        any(_may_be_unrolled(loop) for loop in loops),
    )


def _may_be_unrolled(loop: Any) -> bool:
    # Triton 3.6 does not tell integer attributes of operations.
    return not hasattr(loop, "get_int_attr") or loop.get_int_attr("tt.loop_unroll_factor") is not None


@internal
def run_passes(module: Any, names: Iterable[str]) -> None:
    """Run Triton passes on a Triton module in place.

    A pass is named by its group and name in libtriton, as ``common.cse`` or ``ttir.combine``.
    Raises `ToolchainError` for one that this release does not have, unless it removed with the pass what the pass
    was for.
    """
    manager = triton_ir.pass_manager(module.context)
    manager.enable_debug()  # what MLIR_ENABLE_DUMP and MLIR_ENABLE_TIMING ask for
    for name in names:
        group, _, short = name.partition(".")
        add = getattr(getattr(triton_passes, group, None), f"add_{short}", None)
        if add is None and name in _OBSOLETE_PASSES:
            continue
        if add is None:
            raise ToolchainError(f"this Triton release has no pass {name}")
        add(manager)
    _run(manager, module)


_OBSOLETE_PASSES = frozenset({"ttir.rewrite_tensor_pointer"})
"""Passes that Triton dropped because nothing is left for them: since 3.8 block pointers never reach its IR."""


def _run(manager: Any, module: Any) -> None:
    try:
        manager.run(module, "make_ttir")
    except TypeError:  # older releases take no name of the stage
        manager.run(module)


@internal
def read_ttir(path: Path) -> Any:
    """The Triton module in a file. Raises RuntimeError where it does not parse."""
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    module = triton_ir.parse_mlir_module(str(path), context)
    module.context = context
    return module
