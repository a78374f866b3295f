"""The accesses of the structured form by explicit offsets: for what no descriptor of a transfer can say."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect.operations import StructuredAccess
from triton_porting_kit.compiler.structured.affine import Shape

from .editing import EQ, SGE, SLT, Editor


def offsets(editor: Editor, view: StructuredAccess[Any], shape: Shape) -> Any:
    """The offset of each element of a structured access, as a tensor of i64."""
    total = editor.splat(view.offset, shape)
    for d, stride in enumerate(view.strides):
        index = editor.index(d, shape)
        if d in view.wrap_dims:
            number = view.wrap_dims.index(d)
            size = divisor(editor, view.wrap_size[number])
            start = editor.splat(view.wrap_start[number], (shape[d],))
            moved = editor.add(start, index)
            index = editor.value("arith.remsi", [moved, editor.splat(size, (shape[d],))], index.type)
        step = editor.splat(stride, (shape[d],))
        along = editor.value("arith.muli", [index, step], index.type)
        total = editor.add(total, editor.spread(along, d, shape))
    return total


def divisor(editor: Editor, size: Any) -> Any:
    """`size`, or 1 for 0: of an array without elements, whose bounds exclude all of them."""
    none = editor.compare(EQ, size, editor.constant(0))
    return editor.value("arith.select", [none, editor.constant(1), size], size.type)


def inside(editor: Editor, view: StructuredAccess[Any], shape: Shape) -> Any | None:
    """Which elements are within the bounds of a structured access, as a tensor of i1; None: all of them."""
    conditions = []
    for d, (low, high) in enumerate(zip(view.low, view.high, strict=True)):
        index, size = editor.index(d, shape), (shape[d],)
        between = editor.both(
            [
                editor.compare(SGE, index, editor.splat(low, size)),
                editor.compare(SLT, index, editor.splat(high, size)),
            ]
        )
        conditions.append(editor.spread(between, d, shape))
    return editor.both(conditions)


def wanted(editor: Editor, view: StructuredAccess[Any], shape: Shape) -> Any | None:
    """Which elements a structured access touches, as a tensor of i1; None: all of them."""
    conditions = [inside(editor, view, shape), view.mask]
    return editor.both([condition for condition in conditions if condition is not None])


def exemption(view: StructuredAccess[Any]) -> Any | None:
    """The i1 under which a mask ``splat(i1) | ...`` is set everywhere (docs/architecture.md); None if there is none."""
    owner = None if view.mask is None else view.mask.owner
    if owner is None or getattr(owner, "name", "") != "arith.ori":
        return None
    for operand in owner.operands:
        source = operand.owner
        if getattr(source, "name", "") == "tensor.splat":
            return source.operands[0]
    return None
