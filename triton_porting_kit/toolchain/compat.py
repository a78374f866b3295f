"""Triton's internals, where they differ by release or are no public interface: used from here only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from triton._C.libtriton import ir as triton_ir
from triton._C.libtriton import passes as triton_passes

from triton_porting_kit.errors import ToolchainError

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
