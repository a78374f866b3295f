"""The alias check: which reads must be done before a store writes its first element.

A store and the loads that feed it share one loop. That keeps program order only if no load reads what an earlier
iteration of the loop has stored: each element is read from the very address it is stored to, or the two lie in
different arrays. Kernel arguments are assumed to be either the same array or disjoint. Whether they are the same is
checked when the kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations

from triton_porting_kit.compiler.dialect.operations import Store
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Def
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.memory.writes import Write
from triton_porting_kit.compiler.loops.state import Origins
from triton_porting_kit.compiler.loops.tiles.access import Access, Load
from triton_porting_kit.compiler.loops.tiles.explicit import Gather
from triton_porting_kit.compiler.loops.tiles.tensors import Tensor, closure

MOST_MULTIPLES = 8
"""Most multiples of a stride to try. There are at most two if rows do not overlap."""


def store_in_order(
    lowering: Lowering,
    writes: Sequence[Write],
    inputs: Sequence[Tensor],
    emit: Callable[[bool], None],
    emit_apart: Callable[[], None],
) -> None:
    """Call `emit`, which lowers `writes` in one loop that evaluates `inputs`, after the reads that it would overwrite.

    It is told whether this is for reads that may overlap the writes, which is rare. `emit_apart` lowers these one after
    another. It is called for the case that two of them write to one array.
    """
    builder, operation = lowering.builder, writes[0].operation
    apart = _apart(lowering, writes, inputs)
    meeting = _meeting(lowering, writes)
    pairs = dict.fromkeys([*meeting, *(pair for found in apart.values() for pair in found)])
    if not pairs:
        emit(False)
        return
    # What later operations need must not be computed in only one of the two branches.
    for tensor, buffer in lowering.plan(operation, writes[0].shape, inputs).items():
        lowering.fill(operation, buffer, tensor)
        lowering.hold(tensor, buffer)
    same = builder.constant(0, "i1")
    for other, argument in pairs:
        equal = builder.pure(
            f'llvm.icmp "eq" {other.name}, {argument.name} : !llvm.ptr', "i1", (other, argument)
        )
        same = equal if same.constant == 0 else builder.binary("arith.ori", same, equal)

    def careful() -> list[Value]:
        mark = lowering.scratch.stack.mark
        # What one of several loops stores must not be read by the next.
        first = [tensor for tensor in closure(inputs) if _base(tensor) is not None] if meeting else apart
        for tensor in first:
            lowering.hold(tensor, lowering.materialise(tensor, operation))
        if meeting:
            emit_apart()
        else:
            emit(True)
        lowering.scratch.stack.release(mark)
        return []

    def plain() -> list[Value]:
        mark = lowering.scratch.stack.mark
        emit(False)
        lowering.scratch.stack.release(mark)
        return []

    builder.if_else(same, careful, plain)


def _apart(
    lowering: Lowering, writes: Sequence[Write], inputs: Sequence[Tensor]
) -> dict[Tensor, list[tuple[Value, Value]]]:
    """The reads that `writes` would overwrite if two arguments were the same array, with these arguments.

    What they would overwrite in any case is read here.
    """
    origins = lowering.part(Origins)
    arguments = [origins.get(write.base.name) for write in writes]
    apart: dict[Tensor, list[tuple[Value, Value]]] = {}
    elsewhere = _evaluated_elsewhere(inputs)
    for tensor in closure(inputs):
        base = _base(tensor)
        for write, argument in zip(writes, arguments, strict=True):
            if base is None or tensor.buffer is not None:
                break
            other = origins.get(base.name)
            if argument is None or other is None:
                lowering.materialise(tensor, writes[0].operation)
            elif (
                write.access is None
                or tensor in elsewhere
                or not _same_place(
                    tensor,
                    write.access,
                    moved=base != write.base and (base, write.base) != (other, argument),
                )
            ):
                if other == argument:
                    lowering.materialise(tensor, writes[0].operation)
                else:
                    apart.setdefault(tensor, []).append((other, argument))
    return {tensor: pairs for tensor, pairs in apart.items() if tensor.buffer is None}


def may_share_loop(lowering: Lowering, writes: Sequence[Write]) -> bool:
    """Whether one loop may do all of `writes`, unless two of different arguments go to the same array."""
    origins = lowering.part(Origins)
    last, argument = writes[-1], origins.get(writes[-1].base.name)
    return argument is not None and all(
        origins.get(write.base.name) != argument
        or (write.base == last.base and (write.place == last.place or _lie_apart(lowering, write, last)))
        for write in writes[:-1]
    )


def _lie_apart(lowering: Lowering, one: Write, other: Write) -> bool:
    """Whether two tiles of the same base and shape, at a constant distance, share no element."""
    a, b = one.access, other.access
    if a is None or b is None or a.wraps or b.wraps or list(a.strides) != list(b.strides):
        return False
    (start, first), (end, second) = (_start(lowering, Store(w.operation).offset) for w in (one, other))
    if start != end or types.byte_size(a.element) != types.byte_size(b.element):
        return False
    strides = [stride.constant for stride in a.strides]
    steps = [
        (abs(stride), size) for stride, size in zip(strides, a.shape, strict=True) if isinstance(stride, int)
    ]
    return len(steps) == len(strides) and not _meet(second - first, sorted(steps, reverse=True))


def _start(lowering: Lowering, offset: Def) -> tuple[Value, int]:
    """An offset as a sum of a value and a constant."""
    value = lowering.scalar(offset)
    if isinstance(value.constant, int):
        return lowering.builder.i64(0), value.constant
    if offset.owner is not None and offset.owner.name == "arith.addi":
        for rest, added in permutations(offset.owner.operands):
            constant = lowering.scalar(added).constant
            if isinstance(constant, int):
                start, more = _start(lowering, rest)
                return start, more + constant
    return value, 0


def _meet(distance: int, steps: Sequence[tuple[int, int]]) -> bool:
    """Whether two tiles at a `distance` have an element in common; true if that would take long to tell.

    `steps` are their strides and sizes, the largest stride first.
    """
    if not steps:
        return distance == 0
    (stride, size), *rest = steps
    if stride == 0:
        return _meet(distance, rest)
    reach = sum(step * (many - 1) for step, many in rest)
    first, last = -((reach - distance) // stride), (distance + reach) // stride
    times = range(max(first, 1 - size), min(last, size - 1) + 1)
    return len(times) > MOST_MULTIPLES or any(_meet(distance - stride * time, rest) for time in times)


def _meeting(lowering: Lowering, writes: Sequence[Write]) -> list[tuple[Value, Value]]:
    """The arguments of two writes that may not share a loop if these are the same array."""
    origins = lowering.part(Origins)
    found = []
    for index, write in enumerate(writes):
        for other in writes[:index]:
            pair = origins.get(other.base.name), origins.get(write.base.name)
            first, second = pair
            unmoved = (other.base, write.base) == pair
            if first and second and first != second and not (unmoved and other.place == write.place):
                found.append((first, second))
    return found


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
