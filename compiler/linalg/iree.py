"""A kernel as an executable of IREE's, and the function that dispatches its grid.

IREE's own way to a dispatch goes by tensors of whole arrays, which pointers are not. So a kernel is written as the
`stream.executable` that this way ends in: its bindings are memrefs, and its programs are the workgroups.

Only the operations that tell IREE about bindings and workgroups are IREE's. They are written in MLIR's generic syntax,
which a context without these dialects reads, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.types import element_of
from triton_porting_kit.toolchain import mlir
from triton_porting_kit.toolchain.mlir import ir

from .barriers import Chains
from .expansion import GRID, Functions, Text, unplaced, width
from .rewriting import Rewriting

_BINDING = "!stream.binding"
_INLINE = 'builtin.module(inline{default-pipeline=""},symbol-dce,canonicalize{region-simplify=disabled},cse)'


def enter(rewriting: Rewriting) -> None:
    """Add the function of an executable, which has the kernel's name and calls it."""
    kernel = rewriting.kernel
    name = _name(kernel)
    kinds = [str(argument.type) for argument in rewriting.entry.arguments]
    body = f"{name}__dispatched"
    kernel.attributes["sym_name"] = ir.StringAttr.get(body)
    kernel.attributes["sym_visibility"] = ir.StringAttr.get("private")
    parameters = kinds[: len(kinds) - GRID]
    pipeline, place = rewriting.convention.executable, str(kernel.location)
    rewriting.functions.declare(_entry(name, body, parameters, kinds, pipeline, place))


def adapt(module: Any) -> None:
    """Replace what IREE does not take, and have loops yield tensors in the place of those that they carry: IREE's
    bufferisation asks for it.
    """
    functions, found, loops, casts, chains = Functions(), [], [], [], Chains()

    def visit(operation: Any) -> Any:
        chains.visit(operation)
        if operation.name == "scf.for":
            loops.append(operation)
        if operation.name == "builtin.unrealized_conversion_cast":
            casts.append(operation)
        booleans = operation.name in _REARRANGED and "xi1>" in str(operation.results[0].type)
        if booleans or operation.name in ("tensor.splat", "tensor.from_elements"):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    chains.separate()
    for operation in found:
        if operation.name == "tensor.splat":
            _fill(operation)
            continue
        spell = _inserted if operation.name == "tensor.from_elements" else _rearranged
        body, kind = Text(), str(operation.results[0].type)
        made = spell(operation, body, kind)
        (value,) = functions.call(operation, "spelled", list(operation.operands), [kind], body, [made])
        operation.results[0].replace_all_uses_with(value)
        operation.erase()
    for operation in casts:
        _bind(functions, operation)
    for loop in loops:
        _yield_in_place(loop.regions[0].blocks[0])
    if functions:
        functions.add_to(module)
        mlir.run_passes(module, _INLINE)


def _bind(functions: Functions, cast: Any) -> None:
    """Take the elements of another type that a pointer is used for from its binding: IREE takes no casts of memrefs."""
    source, kind = cast.operands[0].owner, str(cast.results[0].type)
    if getattr(source, "name", "") != "stream.binding.subspan":
        return  # a pointer that the kernel chose, of which IREE says that it cannot be cast
    binding, _, count = source.operands
    old, new = (width(element_of(value)) for value in (cast.operands[0], cast.results[0]))
    body = Text()
    size = body.let(f"arith.muli %a1, {body.constant(old // 8)} : index")
    size = body.let(f"arith.divui {size}, {body.constant(new // 8)} : index")
    made = _subspan(body, "%a0", size, kind)
    (value,) = functions.call(source, "bound", [binding, count], [kind], body, [made])
    cast.results[0].replace_all_uses_with(value)
    cast.erase()


def _subspan(body: Text, binding: str, size: str, kind: str) -> str:
    """All of a binding as a memref of type `kind`, which has `size` elements."""
    return body.let(
        f'"stream.binding.subspan"({binding}, {body.constant(0)}, {size}) : '
        f"({_BINDING}, index, index) -> {kind}"
    )


_REARRANGED = {"linalg.broadcast": "dimensions", "linalg.transpose": "permutation"}


def _rearranged(operation: Any, body: Text, kind: str) -> str:
    """Named operations that rearrange booleans, of which IREE makes bytes in `linalg.generic` alone."""
    source = operation.operands[0]
    given = list(operation.attributes[_REARRANGED[operation.name]])
    rank = ir.RankedTensorType(operation.results[0].type).rank
    broadcast = operation.name == "linalg.broadcast"
    taken = [d for d in range(rank) if d not in given] if broadcast else [given.index(d) for d in range(rank)]
    dims = ", ".join(f"d{d}" for d in range(rank))
    maps = f"affine_map<({dims}) -> ({', '.join(f'd{d}' for d in taken)})>, affine_map<({dims}) -> ({dims})>"
    kinds = ", ".join(['"parallel"'] * rank)
    made = body.let(
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins(%a0 : {source.type}) "
        f"outs(%a1 : {kind}) {{"
    )
    body.do("^bb0(%in: i1, %out: i1):")
    body.do("linalg.yield %in : i1")
    body.do(f"}} -> {kind}")
    return made


def _fill(operation: Any) -> None:
    """Upstream's bufferisation of `tensor.splat` refuses the memory spaces that IREE gives on GPUs."""
    value, kind, at = operation.operands[0], operation.results[0].type, ir.InsertionPoint(operation)
    location = operation.location
    empty = ir.Operation.create("tensor.empty", results=[kind], loc=location, ip=at).results[0]
    made = ir.Operation.create(
        "linalg.fill",
        results=[kind],
        operands=[value, empty],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
        regions=1,
        loc=location,
        ip=at,
    )
    block = made.regions[0].blocks.append(value.type, value.type, arg_locs=[location] * 2)
    ir.Operation.create(
        "linalg.yield", operands=[block.arguments[0]], loc=location, ip=ir.InsertionPoint(block)
    )
    operation.results[0].replace_all_uses_with(made.results[0])
    operation.erase()


def _inserted(operation: Any, body: Text, kind: str) -> str:
    """As `_fill`, of `tensor.from_elements`."""
    made = body.let(f"tensor.empty() : {kind}")
    shape = list(ir.RankedTensorType(operation.results[0].type).shape)
    for number, place in enumerate(itertools.product(*map(range, shape))):
        at = ", ".join(body.constant(index) for index in place)
        made = body.let(f"tensor.insert %a{number} into {made}[{at}] : {kind}")
    return made


def _yield_in_place(block: Any) -> None:
    end = list(block.operations)[-1].operation
    for number, (value, carried) in enumerate(zip(end.operands, list(block.arguments)[1:], strict=True)):
        if str(value.type).startswith("tensor") and not _is_in_place(value, carried):
            end.operands[number] = ir.Operation.create(
                "bufferization.materialize_in_destination",
                results=[value.type],
                operands=[value, carried],
                loc=end.location,
                ip=ir.InsertionPoint(end),
            ).result


_DESTINATIONS = {
    "tensor.insert": 1,
    "tensor.insert_slice": 1,
    "linalg.matmul": 2,
    "linalg.batch_matmul": 2,
    "scf.for": 3,
}
"""Operations that compute in the place of an operand, which nothing else reads afterwards, and its position."""


def _is_in_place(value: Any, carried: Any) -> bool:
    """Whether operations that compute in the place of an operand make a value from `carried`."""
    while value != carried:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name not in _DESTINATIONS:
            return False
        value = owner.operands[_DESTINATIONS[owner.name] + list(owner.results).index(value)]
    return True


def _name(operation: Any) -> str:
    return str(operation.attributes["sym_name"].value) if "sym_name" in operation.attributes else ""


def _is_pointer(kind: str) -> bool:
    return kind.startswith("memref")


def _entry(
    name: str, body_name: str, parameters: Sequence[str], kinds: Sequence[str], pipeline: str, place: str
) -> str:
    """The executable's function: from bindings and workgroups to the kernel's arguments. `place` is its location."""
    pointers = [kind for kind in parameters if _is_pointer(kind)]
    given = [
        *(
            f"%p{number}: {_BINDING if _is_pointer(kind) else 'i64'}"
            for number, kind in enumerate(parameters)
        ),
        *(f"%s{number}: index" for number in range(len(pointers))),
    ]
    body, values, sizes = Text(), [], 0
    for number, kind in enumerate(parameters):
        if not _is_pointer(kind):
            values.append(_scalar(body, f"%p{number}", kind))
            continue
        element = kind.rpartition("x")[2].removesuffix(">")
        count = body.let(f"arith.divui %s{sizes}, {body.constant(width(element) // 8)} : index")
        values.append(_subspan(body, f"%p{number}", count, kind))
        sizes += 1
    for what in ("count", "id"):
        for axis in range(3):
            found = body.let(
                f'"stream.dispatch.workgroup.{what}"() {{dimension = {axis} : index}} : () -> index'
            )
            values.append(body.let(f"arith.index_cast {found} : index to i32"))
    body.do(f"func.call @{body_name}({', '.join(values)}) : ({', '.join(kinds)}) -> ()")
    body.do("return")
    lines = "\n    ".join(map(unplaced, body.lines))
    return f"""
  func.func private @{body_name}({", ".join(kinds)})
  func.func public @{name}({", ".join(f"{one} {place}" for one in given)})
      attributes {{translation_info = {pipeline}}} {{
    {lines}
  }} {place}
"""


def _scalar(body: Text, bits: str, kind: str) -> str:
    """An argument from its bits, an i64."""
    integer = f"i{ir.Type.parse(kind).width}"
    if integer != "i64":
        bits = body.let(f"arith.trunci {bits} : i64 to {integer}")
    return bits if kind == integer else body.let(f"arith.bitcast {bits} : {integer} to {kind}")


def wrapped(module: Any, name: str, text: str) -> str:
    """The executable around the generic text of a module with the function `name`, and a function that dispatches it.

    Its public function `name` takes a view of a buffer of bytes (`!hal.buffer_view` with one dimension) for each
    pointer, the bits of each other argument as an i64, and the grid's sizes as three i64. It returns the views of the
    buffers, in which the kernel has written.
    """
    entry = next(view.operation for view in module.body.operations if _name(view.operation) == name)
    kinds = [str(argument.type) for argument in entry.regions[0].blocks[0].arguments]
    pointers = [number for number, kind in enumerate(kinds) if kind == _BINDING]
    lines = text.splitlines()
    # Names of locations and maps are those of a whole text.
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    last = next(number for number in range(len(lines), 0, -1) if not lines[number - 1].startswith("#"))
    inner = "\n".join(lines[first:last])
    return "\n".join(
        [*lines[:first], _outer(name, pointers, len(kinds) - len(pointers), inner), *lines[last:], ""]
    )


def _outer(name: str, pointers: Sequence[int], parameters: int, inner: str) -> str:
    """The module around the executable, and the function that dispatches it. `pointers` are numbers of parameters."""
    count = len(pointers)
    view, resource = "!hal.buffer_view", "!stream.resource<external>"
    kinds = [view if number in pointers else "i64" for number in range(parameters)] + ["i64"] * 3
    lines = ['%zero = "arith.constant"() <{value = 0 : index}> : () -> index']
    for axis, argument in zip("xyz", range(parameters, len(kinds)), strict=True):
        lines.append(f'%g{axis} = "arith.index_cast"(%a{argument}) : (i64) -> index')
    bytes_ = "tensor<?xi8>"
    for number in pointers:
        lines += [
            f'%s{number} = "hal.buffer_view.dim"(%a{number}) {{index = 0 : index}} : ({view}) -> index',
            f'%r{number} = "stream.tensor.import"(%a{number}, %s{number}, %s{number}) {{result_encoding = {bytes_}}}'
            f" : ({view}, index, index) -> {resource}",
        ]
    sizes = [f"%s{number}" for number in pointers]
    operands = [f"%{'r' if n in pointers else 'a'}{n}" for n in range(parameters)] + sizes
    types = [resource if n in pointers else "i64" for n in range(parameters)] + ["index"] * count
    # The workload, the operands, then of each buffer its size, its part (from, to, how much), and the results' sizes.
    given = ["%gx", "%gy", "%gz", *operands, *sizes, *["%zero"] * count, *sizes, *sizes, *sizes]
    given_types = ["index"] * 3 + types + ["index"] * (5 * count)
    segments = ", ".join(map(str, (3, len(operands), count, count, count, count, count)))
    tied = ", ".join(f"{number} : index" for number in pointers)
    made = f"%w:{count} = " if count else ""
    lines.append(
        f'{made}"stream.async.dispatch"({", ".join(given)}) {{entry_points = [@executable::@{name}], '
        f"operandSegmentSizes = array<i32: {segments}>, tied_operands = [{tied}]}} : "
        f"({', '.join(given_types)}) -> ({', '.join([resource] * count)})"
    )
    for place, number in enumerate(pointers):
        lines.append(
            f'%o{number} = "stream.tensor.export"(%w#{place}, %s{number}, %s{number}) '
            f"{{source_encoding = {bytes_}}} : ({resource}, index, index) -> {view}"
        )
    results = [view] * count
    lines.append(
        f'"util.return"({", ".join(f"%o{number}" for number in pointers)}) : ({", ".join(results)}) -> ()'
    )
    arguments = ", ".join(f"%a{number}: {kind}" for number, kind in enumerate(kinds))
    body = "\n    ".join(lines)
    untied = ", ".join(["-1 : index"] * count)
    return f""""builtin.module"() ({{
  "stream.executable"() ({{
    "stream.executable.export"() ({{
    ^bb0(%x: index, %y: index, %z: index):
      "stream.return"(%x, %y, %z) : (index, index, index) -> ()
    }}) {{function_ref = @{name}, sym_name = "{name}", sym_visibility = "public"}} : () -> ()
    {inner}
    "stream.executable.end"() : () -> ()
  }}) {{sym_name = "executable", sym_visibility = "private"}} : () -> ()
  "util.func"() ({{
  ^bb0({arguments}):
    {body}
  }}) {{function_type = ({", ".join(kinds)}) -> ({", ".join(results)}), sym_name = "{name}",
      sym_visibility = "public", tied_operands = [{untied}]}} : () -> ()
}}) : () -> ()
"""
