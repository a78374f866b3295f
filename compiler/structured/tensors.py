"""Triton's own operations on scalars and tensors of numbers, in upstream and `tpk` operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .diagnostics import fail
from .elementwise import map_elementwise
from .libraries import extern_elementwise
from .rewriter import Rewriter

_PRECISION = {0: "tf32", 1: "tf32x3", 2: "ieee", 3: "bf16x3", 4: "bf16x6"}
_TOWARD_ZERO = 3  # of upstream's rounding modes
Handler = Callable[[Rewriter, Any], None]


def _renamed(name: str, *kept: str) -> Handler:
    """The same operands, results and, of the attributes, `kept`, under another name."""

    def handler(rewriter: Rewriter, operation: Any) -> None:
        attributes = {key: operation.attributes[key] for key in kept if key in operation.attributes}
        kinds = [result.type for result in operation.results]
        created = rewriter.emitter.before(operation).op(name, list(operation.operands), kinds, attributes)
        rewriter.replace(operation, *created.results)

    return handler


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
    rewriter.replace(operation, emitter.extract(operation.operands[0]))


def _reshaped(rewriter: Rewriter, operation: Any) -> None:
    rewriter.emitter.before(operation)
    rewriter.replace(operation, rewriter.apply_shape(operation, operation.operands[0]))


def _dot(rewriter: Rewriter, operation: Any) -> None:
    emitter = rewriter.emitter.before(operation)
    a, b, c = operation.operands
    shape = rewriter.types.info(c).shape
    assert shape is not None
    precision = _PRECISION[ir.IntegerAttr(operation.attributes["inputPrecision"]).value]
    attributes = {
        "tpk.input_precision": ir.StringAttr.get(precision),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
    }
    name = "linalg.matmul" if len(shape) == 2 else "linalg.batch_matmul"
    created = emitter.op(name, [a, b, c], [c.type], attributes, regions=1)
    _multiply_add(rewriter, created, [v.type.element_type for v in (a, b, c)])
    rewriter.replace(operation, created.results[0])


def _multiply_add(rewriter: Rewriter, operation: Any, kinds: list[Any]) -> None:
    """The region of a matmul: `c + a * b` in the type of c."""
    emitter = rewriter.emitter
    block = operation.regions[0].blocks.append(*kinds, arg_locs=[emitter.location] * 3)
    emitter.at = ir.InsertionPoint(block)
    a, b, c = block.arguments
    floating = str(kinds[2])[0] != "i"
    wide = [
        v if v.type == c.type else emitter.value("arith.extf" if floating else "arith.extsi", [v], c.type)
        for v in (a, b)
    ]
    product = emitter.value("arith.mulf" if floating else "arith.muli", wide, c.type)
    total = emitter.value("arith.addf" if floating else "arith.addi", [c, product], c.type)
    emitter.op("linalg.yield", [total], [])


def _with_region(name: str, *kept: str) -> Handler:
    """An operation whose combining region is taken over, with its terminator as tpk.yield."""

    def handler(rewriter: Rewriter, operation: Any) -> None:
        attributes = {key: operation.attributes[key] for key in kept if key in operation.attributes}
        kinds = [result.type for result in operation.results]
        created = rewriter.emitter.before(operation).op(
            name, list(operation.operands), kinds, attributes, regions=1
        )
        block = operation.regions[0].blocks[0]
        end = block.operations[len(block.operations) - 1]
        emitter = rewriter.emitter.before(end)
        emitter.op("tpk.yield", list(end.operands), [])
        end.operation.erase()
        block.append_to(created.regions[0])
        rewriter.replace(operation, *created.results)

    return handler


def _clampf(rewriter: Rewriter, operation: Any) -> None:
    propagate = ir.IntegerAttr(operation.attributes["propagateNan"]).value != 0
    result = rewriter.emitter.before(operation).value(
        "tpk.clampf",
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
    if "rounding" in operation.attributes and ir.IntegerAttr(operation.attributes["rounding"]).value == 0:
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
    emitter = rewriter.emitter.before(operation)
    kind = operation.results[0].type
    result = emitter.value("tensor.concat", list(operation.operands), kind, {"dim": emitter.integer(0)})
    rewriter.replace(operation, result)


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
    """Hints, and barriers: a program is one thread."""
    rewriter.replace(operation)


def _assert(rewriter: Rewriter, operation: Any) -> None:
    _renamed("tpk.assert", "message")(rewriter, operation)


def _print(rewriter: Rewriter, operation: Any) -> None:
    emitter = rewriter.emitter.before(operation)
    attributes = {key: operation.attributes[key] for key in ("prefix", "hex", "isSigned")}
    pointers = [int(rewriter.types.info(v).is_pointer) for v in operation.operands]
    if any(pointers):
        attributes["pointers"] = ir.DenseI32ArrayAttr.get(pointers)
    operands = [rewriter.addresses(v) if rewriter.types.info(v).is_pointer else v for v in operation.operands]
    emitter.op("tpk.print", operands, [], attributes)
    rewriter.replace(operation)


def unsupported(rewriter: Rewriter, operation: Any) -> None:
    """Any other operation of Triton's."""
    name = operation.operation.name
    fail(operation, f"`{name}` cannot be imported", _REMEDIES.get(name, _DEFAULT_REMEDY))


_DEFAULT_REMEDY = "express this part of the kernel with other operations of triton.language"
_REMEDIES = {
    "tt.elementwise_inline_asm": "inline assembly is for one chip only: write it in triton.language, "
    "under a constexpr that says which backend compiles",
    "tt.dot_scaled": "scale the operands in the kernel and use tl.dot",
}

HANDLERS: dict[str, Handler] = {
    "tt.get_program_id": _renamed("tpk.program_id", "axis"),
    "tt.get_num_programs": _renamed("tpk.num_programs", "axis"),
    "tt.make_range": _make_range,
    "tt.splat": _splat,
    "tt.unsplat": _unsplat,
    "tt.expand_dims": _reshaped,
    "tt.broadcast": _reshaped,
    "tt.reshape": _reshaped,
    "tt.trans": _reshaped,
    "tt.dot": _dot,
    "tt.reduce": _with_region("tpk.reduce", "axis"),
    "tt.scan": _with_region("tpk.scan", "axis", "reverse"),
    "tt.clampf": _clampf,
    "tt.mulhiui": _mulhiui,
    "tt.precise_sqrt": _renamed("math.sqrt"),
    "tt.precise_divf": _renamed("arith.divf"),
    "tt.approx_divf": _renamed("arith.divf"),
    "tt.fp_to_fp": _fp_to_fp,
    "tt.extern_elementwise": extern_elementwise,
    "tt.map_elementwise": map_elementwise,
    "tt.bitcast": _bitcast,
    "tt.cat": _cat,
    "tt.join": _renamed("tpk.join"),
    "tt.split": _renamed("tpk.split"),
    "tt.gather": _renamed("tpk.gather_along", "axis"),
    "tt.histogram": _renamed("tpk.histogram"),
    "tt.int_to_ptr": _int_to_ptr,
    "tt.ptr_to_int": _ptr_to_int,
    "tt.assert": _assert,
    "tt.print": _print,
    "ttg.barrier": _drop,
    "gpu.barrier": _drop,
    "llvm.intr.assume": _drop,
}
