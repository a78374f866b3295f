"""Functions, and control flow that carries pointers or index tensors."""

from __future__ import annotations

from functools import partial
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .carried import Carried
from .diagnostics import fail
from .rewriter import Rewriter

POINTER_OPS = frozenset(
    {"tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tt.bitcast"}
)
"""Operations that only compute addresses where their result is a pointer."""


def carrier(rewriter: Rewriter, operation: Any) -> None:
    """scf.for, scf.while, scf.if, arith.select: hand on offsets instead of pointers."""
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
    if carried.form == "offset":
        return types.i64
    if carried.form == "base":
        return types.pointer
    return types.shaped(types.info(carried.targets[0]).shape, types.i64)


def _new_source(rewriter: Rewriter, carried: Carried, holder: Any, value: Any) -> Any:
    """What replaces `value`, made right before the operation that uses it."""
    emitter = rewriter.emitter.before(holder)
    if not rewriter.types.info(value).is_pointer:
        affine = rewriter.analysis.affine(value)
        assert affine is not None
        return emitter.poly(affine.offset)
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


def _rematerialize(rewriter: Rewriter, target: Any) -> None:
    """Make the tensor that a carried scalar offset stands for, for uses other than in addresses."""
    emitter = rewriter.emitter
    affine = rewriter.analysis.affine(target)
    info = rewriter.types.info(target)
    assert affine is not None
    assert info.shape is not None
    for identifier in affine.scalars:
        emitter.scalar(identifier)
    reader = emitter.readers[target]
    emitter.at, emitter.location = ir.InsertionPoint.after(reader), reader.location
    tensor = emitter.affine(affine, info.shape, rewriter.types.parse(info.element))
    rewriter.replaced.append((target, tensor, reader))


def branch(rewriter: Rewriter, operation: Any) -> None:
    """cf.br, cf.cond_br: pass scalar pointers to blocks as !llvm.ptr."""
    rewriter.emitter.before(operation)
    for number, value in enumerate(operation.operands):
        info = rewriter.types.info(value)
        if info.is_pointer:
            if info.shape is not None:
                fail(operation, "a tensor of pointers passes an early return", _BEFORE_RETURN)
            pointer = rewriter.scalar_pointer(value)
            rewriter.edits.append(partial(_set_operand, operation, number, pointer))


_BEFORE_RETURN = "compute the pointers after the return, from offsets"


def function_return(rewriter: Rewriter, operation: Any) -> None:
    """tt.return -> func.return"""
    emitter = rewriter.emitter.before(operation)
    emitter.op("func.return", _arguments(rewriter, operation), [])
    rewriter.replace(operation)


def call(rewriter: Rewriter, operation: Any) -> None:
    """tt.call of a function that is not inlined -> func.call; pointers are passed as base pointers."""
    emitter = rewriter.emitter.before(operation)
    types = rewriter.types
    if operation.operation.parent.name in ("tt.reduce", "tt.scan", "tpk.reduce", "tpk.scan"):
        fail(
            operation, "the function that a reduction or scan combines with is not straight-line code", _WHERE
        )
    operands = _arguments(rewriter, operation)
    for result in operation.results:
        if types.info(result).is_pointer and types.info(result).shape is not None:
            fail(operation, "a function that is not inlined returns a tensor of pointers", _INLINE)
    kinds = [types.pointer if types.info(r).is_pointer else r.type for r in operation.results]
    created = emitter.op("func.call", operands, kinds, {"callee": operation.attributes["callee"]})
    rewriter.replace(operation, *created.results)


_WHERE = "write it with tl.where instead of conditions and loops, and without noinline=True"
_INLINE = "remove noinline=True from that function, or pass the base pointer and the offsets"


def _arguments(rewriter: Rewriter, operation: Any) -> list[Any]:
    found = []
    for value in operation.operands:
        info = rewriter.types.info(value)
        if info.is_pointer and info.shape is not None:
            fail(operation, "a tensor of pointers crosses a function that is not inlined", _INLINE)
        found.append(rewriter.scalar_pointer(value) if info.is_pointer else value)
    return found


def function(rewriter: Rewriter, operation: Any) -> None:
    """tt.func -> func.func, with pointers as !llvm.ptr and what is known of them as argument attributes."""
    types = rewriter.types
    attributes = operation.attributes
    block = operation.regions[0].blocks[0]
    facts = list(attributes["arg_attrs"]) if "arg_attrs" in attributes else []
    inputs, arg_attrs = [], []
    for number, argument in enumerate(block.arguments):
        info = types.info(argument)
        known: dict[str, Any] = {}
        if info.is_pointer:
            if info.shape is not None:
                fail(operation, "a function that is not inlined takes a tensor of pointers", _INLINE)
            assert info.pointee is not None
            known["tpk.pointee"] = ir.TypeAttr.get(types.element(info.pointee))
            rewriter.edits.append(partial(argument.set_type, types.pointer))
        if number < len(facts) and "tt.divisibility" in facts[number]:
            known["tpk.divisibility"] = facts[number]["tt.divisibility"]
        inputs.append(types.pointer if info.is_pointer else argument.type)
        arg_attrs.append(ir.DictAttr.get(known))
    public = "sym_visibility" in attributes and ir.StringAttr(attributes["sym_visibility"]).value == "public"
    results = [
        _result_type(rewriter, t)
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
        },
        regions=1,
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    for body in list(operation.regions[0].blocks)[1:]:
        for argument in body.arguments:
            if types.info(argument).is_pointer:
                rewriter.edits.append(partial(argument.set_type, types.pointer))
    for body in list(operation.regions[0].blocks):
        body.append_to(created.regions[0])
    rewriter.dead.append(operation)


def _result_type(rewriter: Rewriter, kind: Any) -> Any:
    return rewriter.types.pointer if str(kind).startswith("!tt.ptr") else kind
