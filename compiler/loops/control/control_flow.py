"""Structured control flow. Scalars are carried as SSA values, tensors in scratch buffers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from triton_porting_kit.compiler import loop_hints
from triton_porting_kit.compiler.loops.ir.program import Block, Def, Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.state import CarriedBuffers
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Tensor


def _tensor_defs(definitions: Sequence[Def]) -> list[int]:
    return [index for index, definition in enumerate(definitions) if definition.type.is_tensor]


def _buffers(
    lowering: Lowering, definitions: Sequence[Def], known: Mapping[int, Buffer] | None = None
) -> dict[int, Buffer]:
    buffers = dict(known or {})
    for index in _tensor_defs(definitions):
        type = definitions[index].type
        if index in buffers:
            continue
        assert type.shape is not None
        buffers[index] = lowering.scratch.allocate(type.shape, type.element)
    return buffers


def _continued(lowering: Lowering, operation: Operation) -> dict[int, Buffer]:
    """Where a loop goes on in the buffers of loops around or before it: nothing else uses what they hold."""
    found = {}
    for index, initial in enumerate(operation.operands[3:]):
        around = initial.owner is None and initial.block in lowering.part(CarriedBuffers)
        before = initial.owner is not None and initial.owner.name == operation.name
        alone = set(initial.users) == {operation} and operation.operands.count(initial) == 1
        tensor = lowering.tensors.get(initial)
        if (around or before) and alone and initial.block is operation.block and isinstance(tensor, Buffer):
            found[index] = tensor
    return found


def _scalars(lowering: Lowering, definitions: Sequence[Def]) -> list[Value]:
    return [lowering.scalar(d) for d in definitions if not d.type.is_tensor]


def _bind(
    lowering: Lowering, definitions: Sequence[Def], buffers: dict[int, Buffer], scalars: Sequence[Value]
) -> None:
    """Define values in order: tensors as the buffers, scalars as the SSA values."""
    remaining = iter(scalars)
    for index, definition in enumerate(definitions):
        if index in buffers:
            # A copy of its own, so that each value has its own uses.
            lowering.define(definition, buffers[index].renamed())
        else:
            lowering.scalars[definition] = next(remaining)


def _hints(lowering: Lowering, operation: Operation) -> str:
    """The kernel's loop hints for LLVM as an attribute dictionary; empty if there are none."""
    annotation = operation.attribute(loop_hints.ANNOTATION)
    if annotation is None:
        return ""
    lowering.data.has_loop_hints = True
    return f"{{{loop_hints.ANNOTATION} = {annotation}}}"


def _widened(lowering: Lowering, value: Value) -> Value:
    builder = lowering.builder
    if isinstance(value.constant, int):
        return builder.i64(value.constant)
    return builder.cast("arith.extsi", value, "i64")


def for_loop(lowering: Lowering, operation: Operation) -> None:
    """scf.for."""
    from triton_porting_kit.compiler.loops.matmul import k_blocking  # few kernels have loops

    start, stop, step = (lowering.scalar(operand) for operand in operation.operands[:3])
    narrow = start.type
    if (
        narrow == "i32" and step.constant != 1
    ):  # otherwise the last step might overflow and the loop never end
        start, stop, step = (_widened(lowering, value) for value in (start, stop, step))
    initial = operation.operands[3:]
    body = operation.regions[0]
    lowering.enter_region(operation)
    continued = _continued(lowering, operation)
    buffers = _buffers(lowering, operation.results, continued)
    panels, handed = k_blocking.plan(lowering, operation), k_blocking.handed_on(lowering, operation)

    def fill(indices: Iterable[int]) -> list[Value]:
        for index in indices:
            lowering.fill(operation, buffers[index], lowering.tensor(initial[index]))
        return []

    late = k_blocking.filled_late(panels)
    fill(index for index in buffers if index not in late and index not in continued)
    hints = _hints(lowering, operation)
    carried = _scalars(lowering, initial)
    own = len(carried)
    carried += [value for panel in (*panels, *handed) for value in panel.state]
    with lowering.builder.loop(start, stop, step, carried, attributes=hints) as region:
        lowering.builder.forget_reads()
        lowering.scalars[body.arguments[0]] = lowering.builder.cast("arith.trunci", region.induction, narrow)
        _bind(lowering, body.arguments[1:], buffers, region.arguments)
        lowering.part(CarriedBuffers)[body] = buffers
        states = region.arguments[own:]
        k_blocking.begin(lowering, panels, states, region.induction, stop, step, handed)
        region.yields = _lower_body(lowering, body, buffers)
        region.yields += [value for panel in (*panels, *handed) for value in panel.following]
    lowering.builder.forget_reads()
    k_blocking.end(lowering, panels, region.results[own:], handed)
    for index, panel in late.items():
        lowering.builder.if_else(panel.state.begun, lambda: [], partial(fill, [index]))
        lowering.builder.forget_reads()
    _bind(lowering, operation.results, buffers, region.results)


def _lower_body(lowering: Lowering, body: Block, buffers: dict[int, Buffer]) -> list[Value]:
    """Lower a region. Its terminator's tensors are written to `buffers`; its scalars are returned."""
    terminator = body.operations[-1]
    lowering.block(body, lambda: _assign(lowering, terminator, terminator.operands, buffers))
    return _scalars(lowering, terminator.operands)


def _assign(
    lowering: Lowering, operation: Operation, values: Sequence[Def], buffers: dict[int, Buffer]
) -> None:
    """buffers[i] = values[i], as a parallel assignment: nothing is overwritten before it is read."""
    pending, aside = {}, set[int]()
    for index, buffer in buffers.items():
        tensor = lowering.tensor(values[index])
        if not (isinstance(held := tensor.buffer or tensor, Buffer) and held.pointer == buffer.pointer):
            pending[index] = tensor
    while pending:
        free = [
            index
            for index in pending
            if not any(
                reads_buffer(pending[other], buffers[index], aligned_only=other == index) for other in pending
            )
        ]
        if not free:
            # Every target is still read: copy a value to scratch first, which then reads none.
            index = next(index for index in pending if index not in aside)
            pending[index] = _aside(lowering, operation, pending[index])
            aside.add(index)
            continue
        for index in free:
            lowering.fill(operation, buffers[index], pending.pop(index))


def _aside(lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
    held = tensor.buffer or tensor
    if isinstance(held, Buffer):
        copy = lowering.scratch.allocate(held.shape, held.element)
        lowering.fill(operation, copy, held)
        return copy
    return lowering.materialise(tensor, operation)


def reads_buffer(tensor: Tensor, buffer: Buffer, *, aligned_only: bool) -> bool:
    """Whether computing `tensor` reads `buffer`.

    With `aligned_only`, reads of the very element computed do not count.
    """
    stack = [(tensor, True)]
    seen = set()
    while stack:
        current, aligned = visit = stack.pop()
        if visit in seen:
            continue
        seen.add(visit)
        held = current.buffer or current
        if isinstance(held, Buffer):
            same_place = aligned and held.shape == buffer.shape
            if held.pointer == buffer.pointer and not (aligned_only and same_place):
                return True
            continue
        for index, operand in enumerate(current.operands):
            straight = current.operand_dimensions(index) == list(range(len(current.shape)))
            stack.append((operand, aligned and straight))
    return False


def if_else(lowering: Lowering, operation: Operation) -> None:
    """scf.if."""
    condition = lowering.scalar(operation.operands[0])
    lowering.enter_region(operation)
    buffers = _buffers(lowering, operation.results)

    def branch(index: int) -> list[Value]:
        lowering.builder.forget_reads()
        if index >= len(operation.regions):
            return []
        body = operation.regions[index]
        if not body.operations:
            return []
        return _lower_body(lowering, body, buffers)

    results = lowering.builder.if_else(condition, lambda: branch(0), lambda: branch(1))
    lowering.builder.forget_reads()
    _bind(lowering, operation.results, buffers, results)


def while_loop(lowering: Lowering, operation: Operation) -> None:
    """scf.while: the first region computes the condition and the values that it forwards, the second is the body."""
    before, after = operation.regions
    builder = lowering.builder
    lowering.enter_region(operation)
    carried = _buffers(lowering, before.arguments)
    forwarded = _buffers(lowering, operation.results)
    for index, buffer in carried.items():
        lowering.fill(operation, buffer, lowering.tensor(operation.operands[index]))
    initial = _scalars(lowering, operation.operands)

    builder.open()
    builder.forget_reads()
    arguments = [builder.fresh(value.type) for value in initial]
    _bind(lowering, before.arguments, carried, arguments)
    terminator = before.operations[-1]
    lowering.block(before, lambda: _assign(lowering, terminator, terminator.operands[1:], forwarded))
    condition = lowering.scalar(terminator.operands[0])
    passed = _scalars(lowering, terminator.operands[1:])
    types = ", ".join(value.type for value in passed)
    line = f"scf.condition({condition.name})"
    builder.line(f"{line} {', '.join(value.name for value in passed)} : {types}" if passed else line)
    lines = builder.close()

    builder.open()
    builder.forget_reads()
    received = [builder.fresh(value.type) for value in passed]
    _bind(lowering, after.arguments, forwarded, received)
    following = _lower_body(lowering, after, carried)
    if following:
        names = ", ".join(value.name for value in following)
        builder.line(f"scf.yield {names} : {', '.join(value.type for value in following)}")
    else:
        builder.line("scf.yield")
    header = f"^bb0({', '.join(f'{value.name}: {value.type}' for value in received)}):"
    lines += ["} do {", header, *builder.close()]

    pairs = ", ".join(f"{a.name} = {v.name}" for a, v in zip(arguments, initial, strict=True))
    signature = f"({', '.join(value.type for value in initial)}) -> ({types})"
    results = builder.region_operation(
        f"scf.while ({pairs}) : {signature} {{" if pairs else f"scf.while : {signature} {{",
        [value.type for value in passed],
        lines,
        f"attributes {hints}" if (hints := _hints(lowering, operation)) else "",
    )
    builder.forget_reads()
    _bind(lowering, operation.results, forwarded, results)
