"""Triton's own operations on scalars and tensors of numbers, as upstream and `tpk` operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from triton_porting_kit.compiler.dialect import Op
from triton_porting_kit.compiler.dialect.operations import (
    Assert,
    ClampF,
    FpToFp,
    GatherAlong,
    Histogram,
    Join,
    NumPrograms,
    Print,
    ProgramId,
    Reduce,
    Scan,
    Split,
)
from triton_porting_kit.on_demand import function
from triton_porting_kit.toolchain.mlir import ir

from .diagnostics import fail
from .regions import with_region
from .rewriter import Rewriter

_TOWARD_ZERO = 3  # value in upstream's enumeration of rounding modes
Handler = Callable[[Rewriter, Any], None]


def _renamed(name: str | type[Op[Any]]) -> Handler:
    """Replace an operation with one that has the same operands and results.

    For the dialect's, attributes are copied, too.
    """

    def handler(rewriter: Rewriter, operation: Any) -> None:
        if isinstance(name, str):
            _moved(rewriter, operation, name, {})
        else:
            _moved(rewriter, operation, name.OPERATION_NAME, name.attributes_in(operation))

    return handler


def _moved(rewriter: Rewriter, operation: Any, name: str, attributes: dict[str, Any]) -> None:
    """Create the operation `name` with the same operands; pointers are passed as addresses."""
    emitter, types = rewriter.emitter.before(operation), rewriter.types
    operands = [rewriter.plain(value) for value in operation.operands]
    infos = [types.info(result) for result in operation.results]
    kinds = [
        types.shaped(info.shape, types.i64) if info.is_pointer else result.type
        for info, result in zip(infos, operation.results, strict=True)
    ]
    created = emitter.op(name, operands, kinds, attributes).results
    rewriter.replace(
        operation,
        *(
            emitter.value("llvm.inttoptr", [value], types.pointer)
            if info.is_pointer and info.shape is None
            else value
            for info, value in zip(infos, created, strict=True)
        ),
    )


def _make_range(rewriter: Rewriter, operation: Any) -> None:
    start = ir.IntegerAttr(operation.attributes["start"]).value
    size = rewriter.types.info(operation.results[0]).shape
    assert size is not None
    rewriter.replace(operation, rewriter.emitter.range(start, size[0]))


def _splat(rewriter: Rewriter, operation: Any) -> None:
    shape = rewriter.types.info(operation.results[0]).shape
    assert shape is not None
    rewriter.replace(operation, rewriter.emitter.before(operation).splat(operation.operands[0], shape))


def _unsplat(rewriter: Rewriter, operation: Any) -> None:
    emitter = rewriter.emitter.before(operation)
    element = emitter.extract(rewriter.plain(operation.operands[0]))
    if rewriter.types.info(operation.results[0]).is_pointer:
        element = emitter.value("llvm.inttoptr", [element], rewriter.types.pointer)
    rewriter.replace(operation, element)


def _reshaped(rewriter: Rewriter, operation: Any) -> None:
    rewriter.emitter.before(operation)
    rewriter.replace(operation, rewriter.apply_shape(operation, operation.operands[0]))


def _clampf(rewriter: Rewriter, operation: Any) -> None:
    propagate = ir.IntegerAttr(operation.attributes["propagateNan"]).value != 0
    result = rewriter.emitter.before(operation).value(
        ClampF.OPERATION_NAME,
        list(operation.operands),
        operation.results[0].type,
        {"propagate_nan": ir.BoolAttr.get(propagate)},
    )
    rewriter.replace(operation, result)


def _mulhiui(rewriter: Rewriter, operation: Any) -> None:
    kind = operation.results[0].type
    created = rewriter.emitter.before(operation).op(
        "arith.mului_extended", list(operation.operands), [kind, kind]
    )
    rewriter.replace(operation, created.results[1])


def _fp_to_fp(rewriter: Rewriter, operation: Any) -> None:
    emitter = rewriter.emitter.before(operation)
    types = rewriter.types
    source = operation.operands[0]
    before, after = types.info(source), types.info(operation.results[0])
    kind = operation.results[0].type
    attributes = {}
    given = "rounding" in operation.attributes
    toward_zero = given and ir.IntegerAttr(operation.attributes["rounding"]).value == 0
    if after.bits == 8:
        # Upstream's conversions to these types do not saturate, and there are none between two of them.
        attributes["rounding"] = ir.StringAttr.get("rtz" if toward_zero else "rtne")
        rewriter.replace(operation, emitter.value(FpToFp.OPERATION_NAME, [source], kind, attributes))
        return
    if toward_zero:
        attributes["roundingmode"] = ir.IntegerAttr.get(types.i32, _TOWARD_ZERO)
    if before.bits == after.bits:
        source = emitter.value("arith.extf", [source], types.shaped(before.shape, types.parse("f32")))
    elif before.bits < after.bits:
        rewriter.replace(operation, emitter.value("arith.extf", [source], kind))
        return
    rewriter.replace(operation, emitter.value("arith.truncf", [source], kind, attributes))


def _bitcast(rewriter: Rewriter, operation: Any) -> None:
    _renamed("arith.bitcast")(rewriter, operation)


def _cat(rewriter: Rewriter, operation: Any) -> None:
    _moved(rewriter, operation, "tensor.concat", {"dim": rewriter.emitter.integer(0)})


def _int_to_ptr(rewriter: Rewriter, operation: Any) -> None:
    source = operation.operands[0]
    if rewriter.types.info(source).shape is not None:
        rewriter.dead.append(operation)
        return
    emitter = rewriter.emitter.before(operation)
    rewriter.replace(operation, emitter.value("llvm.inttoptr", [source], rewriter.types.pointer))


def _ptr_to_int(rewriter: Rewriter, operation: Any) -> None:
    rewriter.emitter.before(operation)
    rewriter.replace(operation, rewriter.addresses(operation.operands[0]))


def _drop(rewriter: Rewriter, operation: Any) -> None:
    """Drop an operation that has no effect here.

    Hints have none. A barrier has none because a program is one thread. A wait for the preceding kernel has none
    because streams are in order.
    """
    rewriter.replace(operation)


def _print(rewriter: Rewriter, operation: Any) -> None:
    emitter = rewriter.emitter.before(operation)
    attributes = Print.attributes_in(operation)
    pointers = [int(rewriter.types.info(v).is_pointer) for v in operation.operands]
    if any(pointers):
        attributes["pointers"] = ir.DenseI32ArrayAttr.get(pointers)
    operands = [rewriter.addresses(v) if rewriter.types.info(v).is_pointer else v for v in operation.operands]
    emitter.create(Print, [], attributes, values=operands)
    rewriter.replace(operation)


def unsupported(rewriter: Rewriter, operation: Any) -> None:
    """Raise `CompilationError` for any other operation of Triton's."""
    name = operation.operation.name
    fail(
        operation,
        f"`{name}` cannot be imported",
        "express this part of the kernel with other operations of triton.language",
    )


HANDLERS: dict[str, Handler] = {
    "tt.get_program_id": _renamed(ProgramId),
    "tt.get_num_programs": _renamed(NumPrograms),
    "tt.make_range": _make_range,
    "tt.splat": _splat,
    "tt.unsplat": _unsplat,
    "tt.expand_dims": _reshaped,
    "tt.broadcast": _reshaped,
    "tt.reshape": _reshaped,
    "tt.trans": _reshaped,
    "tt.dot": function("compiler.structured.matmuls", "dot"),
    "tt.dot_scaled": function("compiler.structured.scaled_dots", "dot_scaled"),
    "tt.reduce": partial(with_region, cls=Reduce),
    "tt.scan": partial(with_region, cls=Scan),
    "tt.clampf": _clampf,
    "tt.mulhiui": _mulhiui,
    "tt.precise_sqrt": _renamed("math.sqrt"),
    "tt.precise_divf": _renamed("arith.divf"),
    "tt.approx_divf": _renamed("arith.divf"),
    "tt.fp_to_fp": _fp_to_fp,
    "tt.extern_elementwise": function("compiler.structured.libraries", "extern_elementwise"),
    "tt.elementwise_inline_asm": function("compiler.structured.assembly", "inline_assembly"),
    "tt.map_elementwise": function("compiler.structured.elementwise", "map_elementwise"),
    "tt.bitcast": _bitcast,
    "tt.cat": _cat,
    "tt.join": _renamed(Join),
    "tt.split": _renamed(Split),
    "tt.gather": _renamed(GatherAlong),
    "tt.histogram": _renamed(Histogram),
    "tt.int_to_ptr": _int_to_ptr,
    "tt.ptr_to_int": _ptr_to_int,
    "tt.assert": _renamed(Assert),
    "tt.print": _print,
    "ttg.barrier": _drop,
    "gpu.barrier": _drop,
    "tt.grid_dependency_wait": _drop,
    "tt.grid_dependency_launch_dependents": _drop,
    "llvm.intr.assume": _drop,
}
