"""The alias check: which reads must be done before a store writes its first element.

A store and the loads that feed it share one loop. That keeps program order only if no load reads what an earlier
iteration of the loop has stored: each element is read from the very address it is stored to, or the two lie in
different arrays. Kernel arguments are assumed to be either the same array or disjoint. Whether they are the same is
checked when the kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.state import Origins
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.tensors import Tensor, closure


def store_in_order(
    lowering: Lowering,
    operation: Operation,
    target: Value,
    shape: tuple[int, ...],
    inputs: Sequence[Tensor],
    emit: Callable[[], None],
    access: Access | None = None,
) -> None:
    """Call `emit`, which lowers the store of `inputs` to an array at `target`, after the reads that the store would
    overwrite. `access` is that of a structured store.
    """
    builder = lowering.builder
    origins = lowering.part(Origins)
    argument = origins.get(target.name)
    apart: dict[Tensor, Value] = {}
    elsewhere = _evaluated_elsewhere(inputs)
    for tensor in closure(inputs):
        base = _base(tensor)
        if base is None or tensor.buffer is not None:
            continue
        other = origins.get(base.name)
        if argument is None or other is None:
            lowering.materialise(tensor, operation)
        elif (
            access is None
            or tensor in elsewhere
            or not _same_place(tensor, access, moved=base != target and (base, target) != (other, argument))
        ):
            if other == argument:
                lowering.materialise(tensor, operation)
            else:
                apart[tensor] = other
    apart = {tensor: other for tensor, other in apart.items() if tensor.buffer is None}
    if argument is None or not apart:
        emit()
        return
    # What later operations need must not be computed in only one of the two branches.
    for tensor, buffer in lowering.plan(operation, shape, inputs).items():
        lowering.fill(operation, buffer, tensor)
        lowering.hold(tensor, buffer)
    same = builder.constant(0, "i1")
    for other in dict.fromkeys(apart.values()):
        equal = builder.pure(
            f'llvm.icmp "eq" {other.name}, {argument.name} : !llvm.ptr', "i1", (other, argument)
        )
        same = equal if same.constant == 0 else builder.binary("arith.ori", same, equal)

    def branch(careful: bool) -> list[Value]:
        mark = lowering.scratch.stack.mark
        for tensor in apart if careful else ():
            lowering.hold(tensor, lowering.materialise(tensor, operation))
        emit()
        lowering.scratch.stack.release(mark)
        return []

    builder.if_else(same, lambda: branch(True), lambda: branch(False))


def lies_apart(lowering: Lowering, target: Value, inputs: Iterable[Tensor]) -> Value | None:
    """i1: evaluating `inputs` reads no array at `target`; None if that is not known."""
    builder = lowering.builder
    origins = lowering.part(Origins)
    argument = origins.get(target.name)
    found = builder.constant(1, "i1")
    for base in filter(None, map(_base, closure(inputs))):
        other = origins.get(base.name)
        if argument is None or other is None or other == argument:
            return None
        text = f'llvm.icmp "ne" {other.name}, {argument.name} : !llvm.ptr'
        found = builder.logical_and(found, builder.pure(text, "i1", (other, argument)))
    return found


def _evaluated_elsewhere(inputs: Iterable[Tensor]) -> set[Tensor]:
    """The tensors that are evaluated at other points than the loop's own: transposed, broadcast, or gathered from."""
    found: set[Tensor] = set()
    stack = [(tensor, True) for tensor in inputs]
    seen = set(stack)
    while stack:
        tensor, straight = stack.pop()
        if not straight:
            found.add(tensor)
        if tensor.buffer is not None:
            continue
        for index, operand in enumerate(tensor.operands):
            same = tensor.operand_dimensions(index) == list(range(len(tensor.shape)))
            visit = (operand, straight and same)
            if visit not in seen:
                seen.add(visit)
                stack.append(visit)
    return found


def _base(tensor: Tensor) -> Value | None:
    """The pointer that a tensor reads from, if it reads global memory."""
    if isinstance(tensor, Load):
        return tensor.access.base
    return tensor.base if isinstance(tensor, Gather) else None


def _same_place(tensor: Tensor, store: Access, *, moved: bool) -> bool:
    """Whether each element is read from the address it is stored to, and no address is stored to twice.

    For two arrays, the answer is for the case that they are the same. `moved`: the two bases differ even then.
    """
    if not isinstance(tensor, Load):
        return False
    load = tensor.access
    return (
        not moved
        and load.offset == store.offset
        and list(load.strides) == list(store.strides)
        and load.shape == store.shape
        and not load.wraps
        and types.byte_size(load.element) == types.byte_size(store.element)
        and not any(s.constant == 0 and n > 1 for s, n in zip(store.strides, store.shape, strict=True))
    )
