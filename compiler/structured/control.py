"""Functions, and control flow that carries pointers or index tensors."""

from __future__ import annotations

from functools import partial
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Call
from triton_porting_kit.toolchain.mlir import ir

from .carried import Carried
from .poly import ZERO, Poly
from .rewriter import Rewriter

POINTER_OPS = frozenset(
    {"tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tt.bitcast"}
)
"""Operations that only compute addresses if their result is a pointer."""


def carrier(rewriter: Rewriter, operation: Any) -> None:
    """scf.for, scf.while, scf.if, arith.select: pass on offsets instead of pointers."""
    for carried in rewriter.carried.of(operation):
        kind = _new_type(rewriter, carried)
        for target in carried.targets:
            if carried.form == "offset" and not rewriter.types.info(target).is_pointer:
                _rematerialize(rewriter, target)
            rewriter.edits.append(partial(target.set_type, kind))
        for source, number in carried.sources:
            value = _new_source(rewriter, carried, source, source.operands[number])
            rewriter.edits.append(partial(_set_operand, source, number, value))


def _set_operand(operation: Any, number: int, value: Any) -> None:
    operation.operands[number] = value


def _new_type(rewriter: Rewriter, carried: Carried) -> Any:
    types = rewriter.types
    if carried.form in ("offset", "moved"):
        return types.i64
    if carried.form == "base":
        return types.pointer
    return types.shaped(types.info(carried.targets[0]).shape, types.i64)


def _new_source(rewriter: Rewriter, carried: Carried, holder: Any, value: Any) -> Any:
    """The replacement of `value`, created right before the operation that uses it."""
    emitter = rewriter.emitter.before(holder)
    if not rewriter.types.info(value).is_pointer:
        affine = rewriter.analysis.affine(value)
        assert affine is not None
        return emitter.poly(affine.offset)
    if carried.form == "moved":
        return emitter.poly(_distance(rewriter, carried, holder, value))
    pointer = rewriter.analysis.pointer(value)
    if carried.form == "offset":
        assert pointer.index is not None
        return emitter.poly(pointer.index.offset)
    if carried.form == "base":
        assert pointer.index is not None
        return emitter.pointer(pointer.base, pointer.index.offset, pointer.element_bytes)
    if carried.form == "bytes":
        return rewriter.addresses(value)
    _, uniform, tensor = rewriter.offsets(value)
    tensor = emitter.to_i64(tensor)
    if not uniform.terms:
        return tensor
    return emitter.add(tensor, emitter.splat(emitter.poly(uniform), tuple(tensor.type.shape)))


def _distance(rewriter: Rewriter, carried: Carried, holder: Any, value: Any) -> Poly:
    """How far `value` is from the first source, in elements."""
    if carried.is_first(holder):
        return ZERO
    moved = rewriter.carried.movement(carried, value)
    assert moved is not None
    return rewriter.analysis.scalar(carried.targets[0]) + moved


def _rematerialize(rewriter: Rewriter, target: Any) -> None:
    """Create the tensor that a carried scalar offset represents, for uses other than in addresses."""
    emitter = rewriter.emitter
    affine = rewriter.analysis.affine(target)
    info = rewriter.types.info(target)
    assert affine is not None
    assert info.shape is not None
    for identifier in rewriter.analysis.scalars.leaves(affine.scalars):
        emitter.scalar(identifier)
    reader = emitter.readers[target]
    emitter.at, emitter.location = ir.InsertionPoint.after(reader), reader.location
    tensor = emitter.affine(affine, info.shape, rewriter.types.parse(info.element))
    rewriter.replaced.append((target, tensor, reader))


def branch(rewriter: Rewriter, operation: Any) -> None:
    """cf.br, cf.cond_br: pass pointers to blocks in the form that `plain` returns."""
    rewriter.emitter.before(operation)
    for number, value in enumerate(operation.operands):
        if rewriter.types.info(value).is_pointer:
            rewriter.edits.append(partial(_set_operand, operation, number, rewriter.plain(value)))


def function_return(rewriter: Rewriter, operation: Any) -> None:
    """tt.return -> func.return"""
    emitter = rewriter.emitter.before(operation)
    emitter.op("func.return", _arguments(rewriter, operation), [])
    rewriter.replace(operation)


def call(rewriter: Rewriter, operation: Any) -> None:
    """tt.call of a function that is not inlined -> func.call; pointers are passed in the form that `plain` returns.

    In the region of an operation that upstream does not know, the result is a tpk.call: upstream assumes that such a
    region may have its own symbol table.
    """
    emitter = rewriter.emitter.before(operation)
    operands = _arguments(rewriter, operation)
    kinds = [rewriter.types.plain(result.type) for result in operation.results]
    name = Call.OPERATION_NAME if _in_function_of_elements(operation) else "func.call"
    created = emitter.op(name, operands, kinds, {"callee": operation.attributes["callee"]})
    rewriter.replace(operation, *created.results)


def _in_function_of_elements(operation: Any) -> bool:
    holder = operation.operation.parent
    while holder is not None:
        if holder.name.startswith(("tt.", "tpk.")):
            return bool(holder.name != "tt.func")
        holder = holder.parent
    return False


def _arguments(rewriter: Rewriter, operation: Any) -> list[Any]:
    return [rewriter.plain(value) for value in operation.operands]


def is_kernel(function: Any) -> bool:
    """Whether a tt.func is a kernel that can be launched, and not only called."""
    attributes = function.attributes
    return "sym_visibility" in attributes and ir.StringAttr(attributes["sym_visibility"]).value == "public"


def function(rewriter: Rewriter, operation: Any) -> None:
    """tt.func -> func.func, with pointers as !llvm.ptr and known facts about them as argument attributes."""
    types = rewriter.types
    attributes = operation.attributes
    block = operation.regions[0].blocks[0]
    facts = list(attributes["arg_attrs"]) if "arg_attrs" in attributes else []
    inputs, arg_attrs = [], []
    for number, argument in enumerate(block.arguments):
        info = types.info(argument)
        known: dict[str, Any] = {}
        kind = rewriter.types.plain(argument.type)
        if info.is_pointer:
            assert info.pointee is not None
            if info.shape is None:
                known["tpk.pointee"] = ir.TypeAttr.get(types.element(info.pointee))
            rewriter.edits.append(partial(argument.set_type, kind))
        if number < len(facts) and "tt.divisibility" in facts[number]:
            known["tpk.divisibility"] = facts[number]["tt.divisibility"]
        inputs.append(kind)
        arg_attrs.append(ir.DictAttr.get(known))
    public = is_kernel(operation)
    steps = [number for step in rewriter.launch_steps() for number in step]
    results = [
        rewriter.types.plain(t)
        for t in ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value).results
    ]
    created = ir.Operation.create(
        "func.func",
        attributes={
            "sym_name": attributes["sym_name"],
            "sym_visibility": ir.StringAttr.get("public" if public else "private"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, results)),
            "arg_attrs": ir.ArrayAttr.get(arg_attrs),
            **({"tpk.kernel": ir.UnitAttr.get()} if public else {}),
            **({"tpk.promises": ir.DenseI64ArrayAttr.get(steps)} if steps else {}),
        },
        regions=1,
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    for body in list(operation.regions[0].blocks)[1:]:
        for argument in body.arguments:
            if types.info(argument).is_pointer:
                rewriter.edits.append(partial(argument.set_type, rewriter.types.plain(argument.type)))
    for body in list(operation.regions[0].blocks):
        body.append_to(created.regions[0])
    rewriter.dead.append(operation)
