"""Queries about the operands of tensors."""

from __future__ import annotations

from triton_porting_kit.compiler.loops.tiles.access import Load as LoadTensor
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Tensor, closure


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
