"""Operations that make tensors or move whole elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.operations import (
    ClampF,
    GatherAlong,
    Histogram,
    Join,
    NumPrograms,
    ProgramId,
    Range,
    Repeat,
    Split,
    Unpack,
)
from triton_porting_kit.compiler.dialect.types import element_of, shape_of

from .accesses import generic
from .expansion import Text, tensor_type
from .rewriting import Rewriting


def program_id(rewriting: Rewriting, operation: Any) -> None:
    rewriting.replace_by(operation, [rewriting.program(ProgramId(operation).axis)])


def num_programs(rewriting: Rewriting, operation: Any) -> None:
    rewriting.replace_by(operation, [rewriting.programs(NumPrograms(operation).axis)])


def numbers(rewriting: Rewriting, operation: Any) -> None:
    """A range."""
    op, body = Range(operation), Text()
    made, _ = generic(body, shape_of(op.result) or (), [], "i32")
    index = body.let("linalg.index 0 : index")
    value = body.let(f"arith.index_cast {index} : index to i32")
    if op.start:
        value = body.let(f"arith.addi {value}, {body.constant(op.start, 'i32')} : i32")
    body.do(f"linalg.yield {value} : i32")
    body.do(f"}} -> {op.result.type}")
    rewriting.replace(operation, "range", body, [made])


def clamp(rewriting: Rewriting, operation: Any) -> None:
    op, body = ClampF(operation), Text()
    kind = str(op.result.type)
    least, most = ("maximumf", "minimumf") if op.propagate_nan else ("maxnumf", "minnumf")
    value = body.let(f"arith.{least} %a0, %a1 : {kind}")
    value = body.let(f"arith.{most} {value}, %a2 : {kind}")
    rewriting.replace(operation, "clamp", body, [value])


def join(rewriting: Rewriting, operation: Any) -> None:
    op, body = Join(operation), Text()
    kind = str(op.result.type)
    shape = shape_of(op.first)
    if shape is None:
        result = body.let(f"tensor.empty() : {kind}")
        for half in (0, 1):
            result = body.let(f"tensor.insert %a{half} into {result}[{body.constant(half)}] : {kind}")
    else:
        result = interleaved(body, ["%a0", "%a1"], shape, element_of(op.first))
        rows = ", ".join(f"[{d}]" for d in range(len(shape) - 1))
        groups = f"[{rows}{', ' if rows else ''}[{len(shape) - 1}, {len(shape)}]]"
        sizes = ", ".join(map(str, (*shape, 2)))
        flat = tensor_type((*shape[:-1], 2 * shape[-1]), element_of(op.first))
        result = body.let(
            f"tensor.expand_shape {result} {groups} output_shape [{sizes}] : {flat} into {kind}"
        )
    rewriting.replace(operation, "join", body, [result])


def interleaved(body: Text, parts: Sequence[str], shape: Sequence[int], element: str) -> str:
    """A tensor whose last dimension takes elements from `parts`, tensors of `shape`, by turns."""
    count = len(parts)
    part, kind = tensor_type(shape, element), tensor_type((*shape[:-1], count * shape[-1]), element)
    result = body.let(f"tensor.empty() : {kind}")
    sizes, steps = ", ".join(map(str, shape)), ", ".join(["1"] * (len(shape) - 1) + [str(count)])
    for place, value in enumerate(parts):
        offsets = ", ".join(["0"] * (len(shape) - 1) + [str(place)])
        result = body.let(
            f"tensor.insert_slice {value} into {result}[{offsets}] [{sizes}] [{steps}] : {part} into {kind}"
        )
    return result


def split(rewriting: Rewriting, operation: Any) -> None:
    op, body = Split(operation), Text()
    source, kind = str(op.x.type), str(op.results[0].type)
    shape = (shape_of(op.x) or ())[:-1]
    halves = []
    for half in (0, 1):
        if shape_of(op.results[0]) is None:
            halves.append(body.let(f"tensor.extract %a0[{body.constant(half)}] : {source}"))
            continue
        offsets = ", ".join(["0"] * len(shape) + [str(half)])
        sizes = ", ".join([*map(str, shape), "1"])
        ones = ", ".join(["1"] * (len(shape) + 1))
        halves.append(
            body.let(f"tensor.extract_slice %a0[{offsets}] [{sizes}] [{ones}] : {source} to {kind}")
        )
    rewriting.replace(operation, "split", body, halves)


def repeat(rewriting: Rewriting, operation: Any) -> None:
    op = Repeat(operation)
    _picked(rewriting, op, op.x, op.dim, op.times)


def unpack(rewriting: Rewriting, operation: Any) -> None:
    op = Unpack(operation)
    _picked(rewriting, op, op.x, op.dim, 2)


def _picked(rewriting: Rewriting, op: Repeat[Any] | Unpack[Any], source: Any, dim: int, times: int) -> None:
    """A tensor whose element i along `dim` comes from element i // times of `source`."""
    body = Text()
    shape, element = shape_of(op.result) or (), element_of(op.result)
    made, _ = generic(body, shape, [], element)
    indices = [body.let(f"linalg.index {d} : index") for d in range(len(shape))]
    factor = body.constant(times)
    place = list(indices)
    place[dim] = body.let(f"arith.divui {indices[dim]}, {factor} : index")
    value = body.let(f"tensor.extract %a0[{', '.join(place)}] : {source.type}")
    if isinstance(op, Unpack):
        half = body.let(f"arith.remui {indices[dim]}, {factor} : index")
        odd = body.let(f"arith.cmpi ne, {half}, {body.constant(0)} : index")
        four, low = body.constant(4, "i8"), body.constant(15, "i8")
        shifted = body.let(f"arith.shrui {value}, {four} : i8")
        value = body.let(f"arith.andi {body.let(f'arith.select {odd}, {shifted}, {value} : i8')}, {low} : i8")
        if not element.startswith("i"):
            bits = body.let(f"arith.trunci {value} : i8 to i4")
            value = body.let(f"arith.bitcast {bits} : i4 to {element}")
        elif element != "i8":
            value = body.let(f"arith.extui {value} : i8 to {element}")
    body.do(f"linalg.yield {value} : {element}")
    body.do(f"}} -> {op.result.type}")
    rewriting.replace(op.operation, "repeat" if isinstance(op, Repeat) else "unpack", body, [made])


def gather_along(rewriting: Rewriting, operation: Any) -> None:
    op, body = GatherAlong(operation), Text()
    shape, element = shape_of(op.result) or (), element_of(op.result)
    width = element_of(op.indices)
    made, names = generic(body, shape, [("%a1", str(op.indices.type))], element)
    place = [body.let(f"linalg.index {d} : index") for d in range(len(shape))]
    cast = "index_castui" if int(width[1:]) < 32 else "index_cast"
    place[op.axis] = body.let(f"arith.{cast} {names[0]} : {width} to index")
    value = body.let(f"tensor.extract %a0[{', '.join(place)}] : {op.source.type}")
    body.do(f"linalg.yield {value} : {element}")
    body.do(f"}} -> {op.result.type}")
    rewriting.replace(operation, "gather_along", body, [made])


def histogram(rewriting: Rewriting, operation: Any) -> None:
    """A loop over the values that counts in a tensor."""
    op, body = Histogram(operation), Text()
    (bins,) = shape_of(op.result) or (0,)
    element, kind = element_of(op.result), str(op.result.type)
    (count,) = shape_of(op.values) or (0,)
    width = element_of(op.values)
    empty = body.let(f"tensor.empty() : {kind}")
    start = body.let(
        f"linalg.fill ins({body.constant(0, element)} : {element}) outs({empty} : {kind}) -> {kind}"
    )
    zero, one, limit = body.constant(0), body.constant(1), body.constant(count)
    index, bins_so_far, result = body.name(), body.name(), body.name()
    body.do(
        f"{result} = scf.for {index} = {zero} to {limit} step {one} iter_args({bins_so_far} = {start}) -> ({kind}) {{"
    )
    value = body.let(f"tensor.extract %a0[{index}] : {op.values.type}")
    wide = body.let(f"arith.index_castui {value} : {width} to index")
    counted = body.let(f"arith.cmpi ult, {wide}, {body.constant(bins)} : index")
    if op.mask is not None:
        mask = body.let(f"tensor.extract %a1[{index}] : {op.mask.type}")
        counted = body.let(f"arith.andi {counted}, {mask} : i1")
    after = body.name()
    body.do(f"{after} = scf.if {counted} -> ({kind}) {{")
    old = body.let(f"tensor.extract {bins_so_far}[{wide}] : {kind}")
    new = body.let(f"arith.addi {old}, {body.constant(1, element)} : {element}")
    written = body.let(f"tensor.insert {new} into {bins_so_far}[{wide}] : {kind}")
    body.do(f"scf.yield {written} : {kind}")
    body.do("} else {")
    body.do(f"scf.yield {bins_so_far} : {kind}")
    body.do("}")
    body.do(f"scf.yield {after} : {kind}")
    body.do("}")
    rewriting.replace(operation, "histogram", body, [result])
