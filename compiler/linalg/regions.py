"""Reductions and scans: `linalg.reduce` and `linalg.generic` around the regions that they come with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Reduce, Scan
from triton_porting_kit.compiler.dialect.types import element_of, shape_of
from triton_porting_kit.toolchain.mlir import ir

from .expansion import Text, tensor_type
from .rewriting import Rewriting, move_region

NEUTRAL = {
    "arith.addf": "-0.0", "arith.mulf": "1.0", "arith.addi": "0", "arith.muli": "1", "arith.ori": "0",
    "arith.xori": "0", "arith.andi": "-1",
}  # fmt: skip
"""Numbers that change nothing, by the operation of a region: with them a reduction begins. Others begin with the first
element, as those of floats do that choose a number over NaN."""


_LEAST = {"arith.maximumf", "arith.maxnumf", "arith.maxsi", "arith.maxui"}
_MOST = {"arith.minimumf", "arith.minnumf", "arith.minsi", "arith.minui"}


def _bound(combination: str, element: str) -> str | None:
    """The least or greatest number, with which a maximum or minimum begins in the convention `ascend`: its compiler
    does not read the first number."""
    if combination not in _LEAST | _MOST:
        return None
    if element.startswith(("f", "bf")):
        bits, digits = {"f16": (0x7C00, 4), "bf16": (0x7F80, 4), "f32": (0x7F800000, 8)}.get(
            element, (0x7FF << 52, 16)
        )
        return f"0x{bits | (1 << (4 * digits - 1) if combination in _LEAST else 0):0{digits}X}"
    half = 1 << (int(element[1:]) - 1)
    unsigned = combination.endswith("ui")
    least, most = (0, 2 * half - 1) if unsigned else (-half, half - 1)
    return str(least if combination in _LEAST else most)


def _combination(operation: Any) -> str | None:
    """The one operation of a region that combines its two arguments; None for other regions."""
    body = list(operation.regions[0].blocks[0].operations)
    if len(body) != 2 or len(operation.regions[0].blocks[0].arguments) != 2:
        return None
    return str(body[0].operation.name)


def _only_adds_and_multiplies(operation: Any) -> bool:
    """Whether a region adds and multiplies 16-bit floats, which partial results would be rounded to at each step."""
    block = operation.regions[0].blocks[0]
    body = [view.operation for view in block.operations][:-1]
    inside = {*block.arguments, *(result for each in body for result in each.results)}
    return bool(body) and all(
        each.name in ("arith.addf", "arith.mulf")
        and str(each.results[0].type) not in ("f32", "f64")
        and inside.issuperset(each.operands)
        for each in body
    )


def _widened(rewriting: Rewriting, operation: Any) -> Any:
    """The same reduction or scan of f32 in its place, whose results are rounded to the elements' types."""
    values = list(operation.operands)
    kinds = [str(value.type).replace(f"x{element_of(value)}", "xf32") for value in values]
    body = Text()
    wide = rewriting.functions.call(
        operation,
        "widen",
        values,
        kinds,
        body,
        [
            body.let(f"arith.extf %a{i} : {value.type} to {kind}")
            for i, (value, kind) in enumerate(zip(values, kinds, strict=True))
        ],
    )
    f32 = ir.F32Type.get()
    shapes = [shape_of(result) for result in operation.results]
    results = [f32 if shape is None else ir.RankedTensorType.get(list(shape), f32) for shape in shapes]
    made = rewriting.create(
        operation.name,
        operation,
        results,
        wide,
        **{name: operation.attributes[name] for name in ("axis", "reverse") if name in operation.attributes},
    )
    old = operation.regions[0].blocks[0]
    new = made.regions[0].blocks.append(
        *[f32] * len(old.arguments), arg_locs=[operation.location] * len(old.arguments)
    )
    for argument, other in zip(old.arguments, new.arguments, strict=True):
        argument.replace_all_uses_with(other)
    for view in list(old.operations):
        new.append(view)
        for result in view.operation.results:
            result.set_type(f32)
    body = Text()
    narrow = [str(result.type) for result in operation.results]
    returned = [
        body.let(f"arith.truncf %a{i} : {kind} to {target}")
        for i, (kind, target) in enumerate(zip(map(str, results), narrow, strict=True))
    ]
    rewriting.replace_by(
        operation, rewriting.functions.call(operation, "narrow", list(made.results), narrow, body, returned)
    )
    return made


def reduce(rewriting: Rewriting, operation: Any) -> None:
    """`linalg.reduce`, which begins with a neutral number, or with the first elements along the dimension."""
    if _only_adds_and_multiplies(operation):
        operation = _widened(rewriting, operation)
    op = Reduce(operation)
    shape = shape_of(op.inputs[0]) or ()
    combination = _combination(operation) or ""
    neutral = NEUTRAL.get(combination)
    if not rewriting.convention.element_wise_generic:
        neutral = neutral or _bound(combination, element_of(op.inputs[0]))
        if neutral is None:
            _end_reduce(rewriting, operation, shape, _reduced_by_loop(rewriting, operation))
            return
    first, rest = _from_neutral(rewriting, op, neutral) if neutral else _from_first(rewriting, op)
    values = first
    if neutral is not None or shape[op.axis] > 1:
        reduced = rewriting.create(
            "linalg.reduce",
            operation,
            [value.type for value in first],
            [*rest, *first],
            dimensions=ir.DenseI64ArrayAttr.get([op.axis]),
        )
        count = len(first)
        types = [ir.Type.parse(element_of(value)) for value in op.inputs]
        replaced = [*range(count, 2 * count), *range(count)]  # partial results come last in `linalg.reduce`
        move_region(operation.regions[0], reduced.regions[0], [*types, *types], replaced, operation.location)
        values = list(reduced.results)
    _end_reduce(rewriting, operation, shape, values)


def _end_reduce(rewriting: Rewriting, operation: Any, shape: Sequence[int], values: list[Any]) -> None:
    """Replace a reduction by tensors without the dimension, or by their only element."""
    if len(shape) == 1 and shape_of(operation.results[0]) is None:
        values = [
            ir.Operation.create(
                "tensor.extract",
                results=[result.type],
                operands=[value],
                loc=operation.location,
                ip=ir.InsertionPoint(operation),
            ).result
            for value, result in zip(values, operation.results, strict=True)
        ]
    rewriting.replace_by(operation, values)


def _reduced_by_loop(rewriting: Rewriting, operation: Any) -> list[Any]:
    """The results of a loop along the dimension, which combines the slices before with the next one."""
    op = Reduce(operation)
    count = len(op.inputs)
    length = (shape_of(op.inputs[0]) or ())[op.axis]
    body, kinds = Text(), _step_kinds(op)
    slices = [_slice(body, f"%a{i}", op.inputs[i], op.axis, "0", 1, kind) for i, kind in enumerate(kinds)]
    values = rewriting.functions.call(operation, "begin_reduce", list(op.inputs), kinds, body, slices)
    if length > 1:
        loop, block, end = _loop(rewriting, operation, values, length)
        index, *before = block.arguments
        body = Text()
        slices = [
            _slice(body, f"%a{1 + i}", op.inputs[i], op.axis, "%a0", 1, kind) for i, kind in enumerate(kinds)
        ]
        here = rewriting.functions.call(end, "slices", [index, *op.inputs], kinds, body, slices)
        elements = [element_of(value) for value in op.inputs]
        combined = element_wise(
            rewriting, end, operation.regions[0], [*before, *here], before, elements, range(2 * count)
        )
        for position, value in enumerate(combined):
            end.operands[position] = value
        values = list(loop.results)
    body = Text()
    dropped = [
        _without(body, f"%a{i}", value, op.axis, kind)
        for i, (value, kind) in enumerate(zip(values, _kept_kinds(op), strict=True))
    ]
    return rewriting.functions.call(operation, "end_slices", values, _kept_kinds(op), body, dropped)


def _from_neutral(rewriting: Rewriting, op: Reduce[Any], neutral: str) -> tuple[list[Any], list[Any]]:
    """Tensors of a number that changes nothing, and the tensors to combine with them."""
    body, kinds, filled = Text(), _kept_kinds(op), []
    for value, kind in zip(op.inputs, kinds, strict=True):
        element = element_of(value)
        start = body.constant("true" if element == "i1" and neutral in ("-1", "1") else neutral, element)
        empty = body.let(f"tensor.empty() : {kind}")
        filled.append(body.let(f"linalg.fill ins({start} : {element}) outs({empty} : {kind}) -> {kind}"))
    made = rewriting.functions.call(op.operation, "begin_reduce", [], kinds, body, filled)
    return made, list(op.inputs)


def _from_first(rewriting: Rewriting, op: Reduce[Any]) -> tuple[list[Any], list[Any]]:
    """The first elements along the dimension, and the others."""
    body, kinds = Text(), _kept_kinds(op)
    shape = shape_of(op.inputs[0]) or ()
    length = shape[op.axis] - 1
    first, rest, rest_kinds = [], [], []
    for i, (value, kind) in enumerate(zip(op.inputs, kinds, strict=True)):
        first.append(_slice(body, f"%a{i}", value, op.axis, "0", 1, kind))
        if length:
            others = tensor_type((*shape[: op.axis], length, *shape[op.axis + 1 :]), element_of(value))
            rest.append(_slice(body, f"%a{i}", value, op.axis, "1", length, others))
            rest_kinds.append(others)
    made = rewriting.functions.call(
        op.operation, "begin_reduce", list(op.inputs), [*kinds, *rest_kinds], body, [*first, *rest]
    )
    return made[: len(first)], made[len(first) :]


def _kept_kinds(op: Reduce[Any]) -> list[str]:
    """The types of the inputs without the dimension."""
    shape = shape_of(op.inputs[0]) or ()
    return [tensor_type(shape[: op.axis] + shape[op.axis + 1 :], element_of(value)) for value in op.inputs]


def _step_kinds(op: Reduce[Any] | Scan[Any]) -> list[str]:
    """The types of slices of the inputs, whose dimension has length 1."""
    shape = shape_of(op.inputs[0]) or ()
    step = (*shape[: op.axis], 1, *shape[op.axis + 1 :])
    return [tensor_type(step, element_of(value)) for value in op.inputs]


def _slice(body: Text, name: str, value: Any, axis: int, at: str, length: int, kind: str) -> str:
    """`length` indices of a dimension from `at` on; one index is dropped with its dimension by `kind`."""
    shape = shape_of(value) or ()
    offsets = ", ".join(at if d == axis else "0" for d in range(len(shape)))
    sizes = ", ".join(str(length if d == axis else size) for d, size in enumerate(shape))
    ones = ", ".join("1" for _ in shape)
    return body.let(f"tensor.extract_slice {name}[{offsets}] [{sizes}] [{ones}] : {value.type} to {kind}")


def _without(body: Text, name: str, value: Any, axis: int, kind: str) -> str:
    """A tensor without a dimension of one element, which a dimension beside it takes in.

    A slice of the whole would be the same, but AscendNPU-IR for the 950 ends ("collapsing non-contiguous dims") where
    such a slice is stored.
    """
    groups = [[d] for d in range(len(shape_of(value) or ()))]
    if len(groups) == 1:
        groups = []
    else:
        first = min(axis, len(groups) - 2)
        groups[first : first + 2] = [[first, first + 1]]
    return body.let(f"tensor.collapse_shape {name} {groups} : {value.type} into {kind}")


def scan(rewriting: Rewriting, operation: Any) -> None:
    """A loop along the dimension, which combines the slice before with the next one."""
    if _only_adds_and_multiplies(operation):
        operation = _widened(rewriting, operation)
    op = Scan(operation)
    values = list(op.inputs)
    length = (shape_of(values[0]) or ())[op.axis]
    if length == 1:
        rewriting.replace_by(operation, values)
        return
    loop, block, end = _loop(rewriting, operation, values, length)
    previous, current = _neighbours(rewriting, op, end, block, length)
    count = len(values)
    combined = element_wise(
        rewriting,
        end,
        operation.regions[0],
        [*previous, *current],
        previous,
        [element_of(value) for value in values],
        range(2 * count),
    )
    for position, value in enumerate(_inserted(rewriting, op, end, block, combined, length)):
        end.operands[position] = value
    rewriting.replace_by(operation, list(loop.results))


def _loop(rewriting: Rewriting, operation: Any, values: list[Any], length: int) -> tuple[Any, Any, Any]:
    """A loop from 1 to `length` that carries `values`. Returns it, its body, and the body's `scf.yield`."""
    bounds = Text()
    one, last = rewriting.functions.call(
        operation, "bounds", [], ["index"] * 2, bounds, [bounds.constant(1), bounds.constant(length)]
    )
    types = [value.type for value in values]
    loop = rewriting.create("scf.for", operation, types, [one, last, one, *values])
    block = loop.regions[0].blocks.append(
        ir.IndexType.get(), *types, arg_locs=[operation.location] * (1 + len(types))
    )
    with ir.InsertionPoint(block):
        end = ir.Operation.create("scf.yield", operands=list(block.arguments)[1:], loc=operation.location)
    return loop, block, end


def _place(body: Text, op: Scan[Any], length: int) -> str:
    """The index along the dimension of iteration %a0."""
    if not op.reverse:
        return "%a0"
    return body.let(f"arith.subi {body.constant(length - 1)}, %a0 : index")


def _neighbours(
    rewriting: Rewriting, op: Scan[Any], end: Any, block: Any, length: int
) -> tuple[list[Any], list[Any]]:
    """The slices of an iteration, of length 1: the results before, and the elements here."""
    body, kinds = Text(), _step_kinds(op)
    here = _place(body, op, length)
    before = body.let(f"arith.{'addi' if op.reverse else 'subi'} {here}, {body.constant(1)} : index")
    slices = [
        _slice(body, f"%a{1 + i}", value, op.axis, at, 1, kind)
        for at in (before, here)
        for i, (value, kind) in enumerate(zip(op.inputs, kinds, strict=True))
    ]
    made = rewriting.functions.call(end, "slices", list(block.arguments), [*kinds, *kinds], body, slices)
    return made[: len(kinds)], made[len(kinds) :]


def _inserted(
    rewriting: Rewriting, op: Scan[Any], end: Any, block: Any, combined: list[Any], length: int
) -> list[Any]:
    """The carried tensors with the slices of this iteration."""
    body = Text()
    shape = shape_of(op.inputs[0]) or ()
    place = _place(body, op, length)
    offsets = ", ".join(place if d == op.axis else "0" for d in range(len(shape)))
    sizes = ", ".join(str(1 if d == op.axis else size) for d, size in enumerate(shape))
    where = f"[{offsets}] [{sizes}] [{', '.join('1' for _ in shape)}]"
    count = len(combined)
    inserted = [
        body.let(
            f"tensor.insert_slice %a{1 + count + i} into %a{1 + i}{where} : {part.type} into {value.type}"
        )
        for i, (value, part) in enumerate(zip(op.inputs, combined, strict=True))
    ]
    kinds = [str(value.type) for value in op.inputs]
    return rewriting.functions.call(end, "insert", [*block.arguments, *combined], kinds, body, inserted)


def element_wise(
    rewriting: Rewriting,
    at: Any,
    region: Any,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    elements: Sequence[str],
    replaced: Sequence[int],
) -> list[Any]:
    """A `linalg.generic` of tensors of one shape with the operations of a region."""
    rank = len(shape_of(outputs[0]) or ())
    dims = ", ".join(f"d{d}" for d in range(rank))
    count = len(inputs) + len(outputs)
    maps = ", ".join([f"affine_map<({dims}) -> ({dims})>"] * count)
    iterators = ", ".join(["#linalg.iterator_type<parallel>"] * rank)
    made = rewriting.create(
        "linalg.generic",
        at,
        [value.type for value in outputs],
        [*inputs, *outputs],
        indexing_maps=ir.Attribute.parse(f"[{maps}]"),
        iterator_types=ir.Attribute.parse(f"[{iterators}]"),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(inputs), len(outputs)]),
    )
    types = [ir.Type.parse(element_of(value)) for value in (*inputs, *outputs)]
    move_region(region, made.regions[0], types, list(replaced), at.location)
    return list(made.results)
