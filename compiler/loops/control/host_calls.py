"""`tl.device_assert` and `tl.device_print`: calls of the host's routines, which docs/architecture.md defines."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.abi.kernel import FAIL, PRINT
from triton_porting_kit.compiler.dialect.operations import Assert, Print
from triton_porting_kit.compiler.locations import enclosing_function
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.tensors import Point
from triton_porting_kit.errors import SourceLocation


def check(lowering: Lowering, operation: Operation) -> None:
    """tpk.assert: end the kernel at the first element, in row-major order, that is false."""
    condition = lowering.tensor(Assert(operation).condition)
    builder = lowering.builder
    shape = lowering.data.table([len(condition.shape), *condition.shape])

    def body(evaluation: Evaluation, point: Point) -> None:
        holds = evaluation.at(condition, point)
        element = builder.i64(0)
        for index, size in zip(point.indices, condition.shape, strict=True):
            element = builder.add(builder.mul(element, builder.i64(size)), index)
        fail_unless(lowering, operation, holds, element, shape)

    lowering.tile(operation, condition.shape, [condition], body, scalars=True)


def fail_unless(lowering: Lowering, operation: Operation, holds: Value, element: Value, shape: Value) -> None:
    """End the kernel unless every lane of `holds` is set. `element` is the row-major index of the first lane."""
    builder = lowering.builder
    description = lowering.data.text(described(operation.location, Assert(operation).message))
    lanes = holds.lanes

    def fail() -> list[Value]:
        failed = element
        if lanes > 1:
            none = builder.constant(lanes, f"vector<{lanes}xi32>")
            first = builder.select(holds, none, builder.iota(lanes))
            text = f"vector.reduction <minui>, {first.name} : {first.type} into i32"
            lane = builder.pure(text, "i32", (first,), floor=builder.level)
            failed = builder.add(element, builder.cast("arith.extui", lane, "i64"))
        lowering.data.call(FAIL, [description, *lowering.grid.program_ids, failed, shape])
        return []

    every = holds
    if lanes > 1:
        every = builder.pure(f"vector.reduction <and>, {holds.name} : {holds.type} into i1", "i1", (holds,))
    builder.if_else(every, list, fail)


def described(place: SourceLocation | None, message: str) -> str:
    """The location of an assertion, and its text."""
    if place is None:
        return message
    return f"{place_of(place)}: {message}" if message else place_of(place)


def place_of(place: SourceLocation) -> str:
    """A location in the kernel's source for messages: file, line and function."""
    function = enclosing_function(place)
    return f"{place.file}:{place.line}" + (f", in {function}" if function else "")


def show(lowering: Lowering, operation: Operation) -> None:
    """tpk.print: one operand after the other, each with all its elements. Scalars are printed by each thread."""
    data, builder = lowering.data, lowering.builder
    op = Print(operation)
    hexadecimal = builder.constant(int(op.hex), "i32")
    nothing = builder.pure("llvm.mlir.zero : !llvm.ptr", "!llvm.ptr", ())
    if not op.values:
        _print(
            lowering, [data.text(heading(op)), nothing, hexadecimal, nothing, nothing], lowering.grid.threads
        )
    for index, definition in enumerate(op.values):
        tensor = lowering.tensor(definition)
        if tensor.element in types.FLOAT8:
            from triton_porting_kit.compiler.loops.matmul.products import converted  # few kernels print

            tensor = converted(tensor, "f32")
        text, name = data.text(heading(op, index)), data.text(shown_type(op, index, tensor.element))
        shape = data.table([len(tensor.shape), *tensor.shape])
        elements = lowering.materialise(tensor, operation).pointer
        _print(
            lowering, [text, name, hexadecimal, shape, elements], 1 if tensor.shape else lowering.grid.threads
        )


def heading(op: Print[Any], index: int | None = None) -> str:
    """What a print shows before the elements of the value `index`, or alone."""
    text = op.prefix if op.prefix.startswith((" ", ":")) else f" {op.prefix}"
    return text if index is None or len(op.values) == 1 else f"{text}(operand {index}) "


def shown_type(op: Print[Any], index: int, element: str) -> str:
    """The type of the elements of the value `index`, by its name in docs/architecture.md."""
    if index < len(op.pointers) and op.pointers[index]:
        return "ptr"
    if element.startswith("i") and element != "i1" and not op.isSigned[index]:
        return f"u{element[1:]}"
    return element


def _print(lowering: Lowering, what: list[Value], times: int) -> None:
    builder = lowering.builder
    call = [*what, *lowering.grid.program_ids]
    if times == 1:
        lowering.data.call(PRINT, call)
        return
    with builder.loop(builder.i64(0), builder.i64(times), builder.i64(1)):
        lowering.data.call(PRINT, call)
