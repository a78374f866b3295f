"""Maps of functions over elements, one or several at a time: `linalg.generic` around their regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Map
from triton_porting_kit.compiler.dialect.types import element_of, shape_of

from .expansion import Text, tensor_type
from .regions import element_wise
from .rewriting import Rewriting
from .shapes import interleaved


def map_elements(rewriting: Rewriting, operation: Any) -> None:
    op = Map(operation)
    body = Text()
    kinds = [str(result.type) for result in op.results]
    if shape_of(op.results[0]) is None:
        raise rewriting.unsupported(operation, "it is a function of scalars", "use tensors")
    inputs, pack = list(op.inputs), op.pack
    elements = [element_of(value) for value in op.results]
    if pack == 1:
        empty = [body.let(f"tensor.empty() : {kind}") for kind in kinds]
        outputs = rewriting.functions.call(operation, "outputs", [], kinds, body, empty)
        results = element_wise(
            rewriting, operation, operation.regions[0], inputs, outputs, elements, range(len(inputs))
        )
        rewriting.replace_by(operation, results)
        return
    _map_packs(rewriting, operation, inputs, elements, pack)


def _map_packs(
    rewriting: Rewriting, operation: Any, inputs: list[Any], elements: Sequence[str], pack: int
) -> None:
    """Elements that are adjacent in row-major order become tensors of their own, one for each place in the pack."""
    body = Text()
    groups: list[str] = []
    group_kinds: list[str] = []
    count = 1
    for size in shape_of(operation.results[0]) or ():
        count *= size
    rows = count // pack
    for i, value in enumerate(inputs):
        element = element_of(value)
        flat = _flat(body, f"%a{i}", value, count)
        kind, flat_kind = tensor_type((rows,), element), tensor_type((count,), element)
        for k in range(pack):
            groups.append(
                body.let(f"tensor.extract_slice {flat}[{k}] [{rows}] [{pack}] : {flat_kind} to {kind}")
            )
            group_kinds.append(kind)
    out_kinds = [tensor_type((rows,), element) for element in elements for _ in range(pack)]
    empty = [body.let(f"tensor.empty() : {kind}") for kind in out_kinds]
    made = rewriting.functions.call(
        operation, "packs", inputs, [*group_kinds, *out_kinds], body, [*groups, *empty]
    )
    columns, outputs = made[: len(groups)], made[len(groups) :]
    results = element_wise(
        rewriting, operation, operation.regions[0], columns, outputs, elements, range(len(columns))
    )
    body = Text()
    returned = []
    for i, (result, element) in enumerate(zip(operation.results, elements, strict=True)):
        flat = interleaved(body, [f"%a{i * pack + k}" for k in range(pack)], (rows,), element)
        flat_kind = tensor_type((count,), element)
        shape = shape_of(result) or ()
        if len(shape) > 1:
            dims = ", ".join(map(str, range(len(shape))))
            sizes = ", ".join(map(str, shape))
            flat = body.let(
                f"tensor.expand_shape {flat} [[{dims}]] output_shape [{sizes}] : {flat_kind} into {result.type}"
            )
        returned.append(flat)
    kinds = [str(result.type) for result in operation.results]
    rewriting.replace_by(
        operation, rewriting.functions.call(operation, "unpack", results, kinds, body, returned)
    )


def _flat(body: Text, name: str, value: Any, count: int) -> str:
    shape = shape_of(value) or ()
    if len(shape) == 1:
        return name
    dims = ", ".join(map(str, range(len(shape))))
    kind = tensor_type((count,), element_of(value))
    return body.let(f"tensor.collapse_shape {name} [[{dims}]] : {value.type} into {kind}")
