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

from triton_porting_kit.toolchain import mlir
from triton_porting_kit.toolchain.mlir import ir

from .expansion import GRID, Functions, Text, width

_INLINE = "builtin.module(inline,symbol-dce,canonicalize,cse)"


def wrap(module: Any, name: str, pipeline: str) -> Any:
    """A new module with IREE's executable, compiled by a pipeline of IREE's, around the kernel `name` of `module`.

    Its public function `name` takes a view of a buffer of bytes (`!hal.buffer_view` with one dimension) for each
    pointer, the bits of each other argument as an i64, and the grid's sizes as three i64. It returns the views of the
    buffers, in which the kernel has written.
    """
    kernel = next(view.operation for view in module.body.operations if _name(view.operation) == name)
    kinds = [str(argument.type) for argument in kernel.regions[0].blocks[0].arguments]
    parameters = kinds[: len(kinds) - GRID]
    body = f"{name}__dispatched"
    _spell_out(module, kernel)
    _carry_in_place(kernel)
    kernel.attributes["sym_name"] = ir.StringAttr.get(body)
    kernel.attributes["sym_visibility"] = ir.StringAttr.get("private")
    entry = ir.Module.parse(_entry(name, body, parameters, kinds, pipeline))
    for view in list(entry.body.operations):
        if _name(view.operation) == name:
            module.body.append(view.operation)
    mlir.run_passes(module, _INLINE)
    inner = module.operation.get_asm(
        enable_debug_info=True, print_generic_op_form=True, use_local_scope=True, assume_verified=True
    )
    return ir.Module.parse(_outer(name, parameters, str(inner)))


_REARRANGED = {"linalg.broadcast": "dimensions", "linalg.transpose": "permutation"}


def _spell_out(module: Any, kernel: Any) -> None:
    """Replace what IREE does not take: see `_rearranged`, `_filled` and `_inserted`."""
    functions, found = Functions(), []

    def visit(operation: Any) -> Any:
        booleans = operation.name in _REARRANGED and "xi1>" in str(operation.results[0].type)
        if booleans or operation.name in ("tensor.splat", "tensor.from_elements"):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    for operation in found:
        spell = {"tensor.splat": _filled, "tensor.from_elements": _inserted}.get(operation.name, _rearranged)
        body, kind = Text(), str(operation.results[0].type)
        made = spell(operation, body, kind)
        (value,) = functions.call(operation, "spelled", list(operation.operands), [kind], body, [made])
        operation.results[0].replace_all_uses_with(value)
        operation.erase()
    functions.add_to(module)


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


def _filled(operation: Any, body: Text, kind: str) -> str:
    """Upstream's bufferisation of `tensor.splat` refuses the memory spaces that IREE gives on GPUs."""
    empty = body.let(f"tensor.empty() : {kind}")
    return body.let(f"linalg.fill ins(%a0 : {operation.operands[0].type}) outs({empty} : {kind}) -> {kind}")


def _inserted(operation: Any, body: Text, kind: str) -> str:
    """As `_filled`, of `tensor.from_elements`."""
    made = body.let(f"tensor.empty() : {kind}")
    shape = list(ir.RankedTensorType(operation.results[0].type).shape)
    for number, place in enumerate(itertools.product(*map(range, shape))):
        at = ", ".join(body.constant(index) for index in place)
        made = body.let(f"tensor.insert %a{number} into {made}[{at}] : {kind}")
    return made


def _carry_in_place(operation: Any) -> None:
    """Have loops yield tensors in the place of those that they carry: IREE's bufferisation asks for it."""
    for region in operation.regions:
        for block in region.blocks:
            for view in list(block.operations):
                _carry_in_place(view.operation)
                if view.operation.name == "scf.for":
                    _yield_in_place(view.operation.regions[0].blocks[0])


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


def _entry(name: str, body_name: str, parameters: Sequence[str], kinds: Sequence[str], pipeline: str) -> str:
    """The executable's function: from bindings and workgroups to the kernel's arguments."""
    pointers = [kind for kind in parameters if _is_pointer(kind)]
    given = [
        f"%p{number}: {'!stream.binding' if _is_pointer(kind) else 'i64'}"
        for number, kind in enumerate(parameters)
    ] + [f"%s{number}: index" for number in range(len(pointers))]
    body, values, sizes = Text(), [], 0
    for number, kind in enumerate(parameters):
        if not _is_pointer(kind):
            values.append(_scalar(body, f"%p{number}", kind))
            continue
        element = kind.rpartition("x")[2].removesuffix(">")
        count = body.let(f"arith.divui %s{sizes}, {body.constant(width(element) // 8)} : index")
        values.append(
            body.let(
                f'"stream.binding.subspan"(%p{number}, {body.constant(0)}, {count}) : '
                f"(!stream.binding, index, index) -> {kind}"
            )
        )
        sizes += 1
    for what in ("count", "id"):
        for axis in range(3):
            found = body.let(
                f'"stream.dispatch.workgroup.{what}"() {{dimension = {axis} : index}} : () -> index'
            )
            values.append(body.let(f"arith.index_cast {found} : index to i32"))
    lines = "\n    ".join(body.lines)
    return f"""
  func.func private @{body_name}({", ".join(kinds)})
  func.func public @{name}({", ".join(given)}) attributes {{translation_info = {pipeline}}} {{
    {lines}
    func.call @{body_name}({", ".join(values)}) : ({", ".join(kinds)}) -> ()
    return
  }}
"""


def _scalar(body: Text, bits: str, kind: str) -> str:
    """An argument from its bits, an i64."""
    integer = f"i{ir.Type.parse(kind).width}"
    if integer != "i64":
        bits = body.let(f"arith.trunci {bits} : i64 to {integer}")
    return bits if kind == integer else body.let(f"arith.bitcast {bits} : {integer} to {kind}")


def _outer(name: str, parameters: Sequence[str], inner: str) -> str:
    """The module around the executable, and the function that dispatches it."""
    pointers = [number for number, kind in enumerate(parameters) if _is_pointer(kind)]
    count = len(pointers)
    view, resource = "!hal.buffer_view", "!stream.resource<external>"
    kinds = [view if _is_pointer(kind) else "i64" for kind in parameters] + ["i64"] * 3
    lines = ['%zero = "arith.constant"() <{value = 0 : index}> : () -> index']
    for axis, argument in zip("xyz", range(len(parameters), len(kinds)), strict=True):
        lines.append(f'%g{axis} = "arith.index_cast"(%a{argument}) : (i64) -> index')
    bytes_ = "tensor<?xi8>"
    for number in pointers:
        lines += [
            f'%s{number} = "hal.buffer_view.dim"(%a{number}) {{index = 0 : index}} : ({view}) -> index',
            f'%r{number} = "stream.tensor.import"(%a{number}, %s{number}, %s{number}) {{result_encoding = {bytes_}}}'
            f" : ({view}, index, index) -> {resource}",
        ]
    sizes = [f"%s{number}" for number in pointers]
    operands = [f"%r{n}" if _is_pointer(kind) else f"%a{n}" for n, kind in enumerate(parameters)] + sizes
    types = [resource if _is_pointer(kind) else "i64" for kind in parameters] + ["index"] * count
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
