"""Queries about the operands of tensors."""

from __future__ import annotations

from collections.abc import Iterable

from triton_porting_kit.compiler.loops.tiles.access import Gather
from triton_porting_kit.compiler.loops.tiles.access import Load as LoadTensor
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Tensor


def closure(inputs: Iterable[Tensor]) -> list[Tensor]:
    """The tensors that evaluating `inputs` evaluates, each once. A tensor in scratch does not evaluate its operands."""
    found: dict[Tensor, None] = {}
    stack = list(inputs)
    while stack:
        tensor = stack.pop()
        if tensor in found or tensor.buffer is not None:
            continue
        found[tensor] = None
        stack += tensor.operands
    return list(found)


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
