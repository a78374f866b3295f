"""Queries about the operands of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.tiles.access import Load as LoadTensor
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.tensors import EXPENSIVE, Buffer, Tensor, closure

if TYPE_CHECKING:
    from triton_porting_kit.compiler.loops.ir.program import Block


def reads_memory(tensor: Tensor) -> bool:
    """Whether evaluating the tensor reads global memory."""
    return any(isinstance(t, LoadTensor | Gather) for t in closure([tensor]))


def cost(tensor: Tensor, known: dict[Tensor, int]) -> int:
    """The approximate cost of evaluating one element now, in simple operations."""
    if tensor.buffer is not None or isinstance(tensor, Buffer):
        return 1
    value = known.get(tensor)
    if value is None:
        value = known[tensor] = tensor.own_cost + sum(cost(operand, known) for operand in tensor.operands)
    return value


def kept_instead(tensor: Tensor, block: Block | None, is_kept: Callable[[Tensor], bool]) -> list[Tensor]:
    """What to keep in scratch so that an element of `tensor` costs little.

    These are the parts with fewer elements, which are spread over it, as far as they `is_kept` themselves; or the
    tensor, if the rest is not cheap or such a part is not defined in `block`.
    """
    found: list[Tensor] = []
    left, pending, seen = 0, [tensor], {tensor}
    while pending:
        part = pending.pop()
        if part.buffer is not None or isinstance(part, Buffer):
            left += 1
            continue
        if part.shape and math.prod(part.shape) < math.prod(tensor.shape):
            if part.definition is not None and part.definition.block is not block:
                return [tensor]
            found.append(part)
            left += 1
            continue
        left += part.own_cost
        if left >= EXPENSIVE or (part.shape and isinstance(part, LoadTensor | Gather)):
            return [tensor]
        pending += [operand for operand in part.operands if operand not in seen]
        seen.update(part.operands)
    return [part for part in found if is_kept(part)]


def unread(tensor: Tensor) -> Iterator[Tensor]:
    """The tiles in memory that evaluating `tensor` reads, but not those that another one's offsets depend on: reading
    that one reads them. The caller may give a tile a buffer while it iterates.
    """
    pending, seen = [tensor], {tensor}
    while pending:
        part = pending.pop()
        if part.buffer is not None:
            continue
        if isinstance(part, LoadTensor | Gather) and part.shape:
            yield part
            continue
        pending += [operand for operand in part.operands if operand not in seen]
        seen.update(part.operands)


def buffers_of(tensors: Iterable[Tensor]) -> set[Value]:
    """The addresses of the scratch that evaluating `tensors` reads."""
    used: set[Value] = set()
    seen: set[Tensor] = set()
    stack = list(tensors)
    while stack:
        tensor = stack.pop()
        held = tensor.buffer or tensor
        if isinstance(held, Buffer):
            used.add(held.pointer)
        elif tensor not in seen:
            seen.add(tensor)
            stack += tensor.operands
    return used
