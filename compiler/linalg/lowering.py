"""From the structured form to upstream dialects only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.dialect import operations as tpk
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import mlir
from triton_porting_kit.toolchain.mlir import ir

from . import (
    accesses,
    ascend,
    atomics,
    calls,
    functions,
    iree,
    maps,
    messages,
    pointers,
    products,
    regions,
    shapes,
)
from .conventions import Convention
from .rewriting import Rewriting

Expansion = Callable[[Rewriting, Any], None]

EXPANSIONS: dict[str, Expansion] = {
    tpk.ProgramId.OPERATION_NAME: shapes.program_id,
    tpk.NumPrograms.OPERATION_NAME: shapes.num_programs,
    tpk.Range.OPERATION_NAME: shapes.numbers,
    tpk.Load.OPERATION_NAME: accesses.load,
    tpk.Store.OPERATION_NAME: accesses.store,
    tpk.Gather.OPERATION_NAME: accesses.gather,
    tpk.Scatter.OPERATION_NAME: accesses.scatter,
    tpk.AtomicRmw.OPERATION_NAME: atomics.read_modify_write,
    tpk.AtomicCas.OPERATION_NAME: atomics.compare_and_swap,
    tpk.AtomicPoll.OPERATION_NAME: atomics.poll,
    tpk.Assert.OPERATION_NAME: messages.check,
    tpk.Print.OPERATION_NAME: messages.show,
    tpk.Reduce.OPERATION_NAME: regions.reduce,
    tpk.Scan.OPERATION_NAME: regions.scan,
    tpk.Map.OPERATION_NAME: maps.map_elements,
    tpk.Function.OPERATION_NAME: functions.function,
    tpk.FpToFp.OPERATION_NAME: functions.convert,
    tpk.ClampF.OPERATION_NAME: shapes.clamp,
    tpk.Join.OPERATION_NAME: shapes.join,
    tpk.Split.OPERATION_NAME: shapes.split,
    tpk.Unpack.OPERATION_NAME: shapes.unpack,
    tpk.Repeat.OPERATION_NAME: shapes.repeat,
    tpk.GatherAlong.OPERATION_NAME: shapes.gather_along,
    tpk.Histogram.OPERATION_NAME: shapes.histogram,
    **pointers.EXPANSIONS,
}
"""What each operation becomes. Operations of upstream's that are missing here stay."""

_KEPT = ("arith.", "math.")
"""Dialects whose operations stay, except for choices between pointers."""

# Without the pipeline that the inliner would run on each function that it inlines.
_INLINE = 'inline{default-pipeline=""},symbol-dce,cse,canonicalize{region-simplify=disabled}'
_PASSES = f"builtin.module({_INLINE})"
_GENERIC_PASSES = f"builtin.module({_INLINE},convert-elementwise-to-linalg)"
_EXPANDED = frozenset(
    f"math.{name}" for name in ("sinh", "cosh", "asinh", "acosh", "atanh", "roundeven", "ctlz")
)
"""Functions that AscendNPU-IR does not have, which upstream writes with others."""
_EXPAND = (
    "builtin.module(math-expand-ops{ops="
    + ",".join(name.removeprefix("math.") for name in sorted(_EXPANDED))
    + "},canonicalize{region-simplify=disabled},cse)"
)
_CLEAN = "builtin.module(canonicalize{region-simplify=disabled},cse)"


def lower_to_linalg(module: Any, convention: Convention) -> None:
    """Lower a structured module to upstream dialects in place, in a convention.

    In those of IREE, the kernel becomes the function of an executable of its name, see `iree`. Raises
    `CompilationError`, with the kernel's line, for what the convention cannot express.
    """
    with module.context, ir.Location.unknown():
        kernel = _kernel(module)
        name = str(kernel.attributes["sym_name"].value)
        rewriting = Rewriting(module, kernel, convention)
        rewriting.sign()
        _block(rewriting, rewriting.entry)
        _drop_uncalled(rewriting)
        if convention.transposed_products and not products.MAPS.keys().isdisjoint(rewriting.kept):
            products.take_transposed(kernel)
        if convention.executable:
            iree.enter(rewriting)
        for view in module.body.operations:  # as passes expect; the parser verifies those that are added
            view.operation.verify()
        rewriting.functions.add_to(module)
        if "tpk.structured" in module.operation.attributes:
            del module.operation.attributes["tpk.structured"]
        mlir.run_passes(module, _GENERIC_PASSES if convention.element_wise_generic else _PASSES)
        if any(name.startswith("llvm.") for name in rewriting.kept):
            _refuse_leftovers(rewriting)
        if not convention.element_wise_generic:
            _apply_to_tensors(module, name)
        _finish(_kernel_named(module, name), rewriting)
        if convention.executable:
            iree.adapt(module)


def _apply_to_tensors(module: Any, name: str) -> None:
    """Write the kernel with element-wise operations on tensors that AscendNPU-IR has."""
    if not _EXPANDED.isdisjoint(_names_in(module.operation)):
        mlir.run_passes(module, _EXPAND)
    if ascend.write_otherwise(module):
        mlir.run_passes(module, _PASSES)
    if ascend.apply_to_tensors(_kernel_named(module, name)):
        mlir.run_passes(module, _CLEAN)


def _kernel(module: Any) -> Any:
    for function in module.body.operations:
        if "tpk.kernel" in function.operation.attributes:
            return function.operation
    raise CompilationError(
        "the structured module holds no function marked tpk.kernel",
        remedy="give what `tpk compile --emit structured` prints",
    )


def _kernel_named(module: Any, name: str) -> Any:
    return next(
        view.operation
        for view in module.body.operations
        if str(view.operation.attributes["sym_name"].value) == name
    )


def _finish(kernel: Any, rewriting: Rewriting) -> None:
    """Give a kernel's function the arguments and attributes that the convention adds."""
    convention = rewriting.convention
    for name, text in convention.attributes:
        kernel.attributes[name] = ir.Attribute.parse(text)
    if convention.mix_mode:
        multiplies = not products.MAPS.keys().isdisjoint(rewriting.kept)
        kernel.attributes["mix_mode"] = ir.StringAttr.get("mix" if multiplies else "aiv")
    if not convention.leading:
        return
    old = kernel.regions[0].blocks[0]
    added = [ir.Type.parse(kind) for kind in convention.leading]
    kinds = [*added, *(argument.type for argument in old.arguments)]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))
    made = ir.Operation.create(
        "func.func",
        attributes={name: kernel.attributes[name] for name in _names(kernel)},
        regions=1,
        loc=kernel.location,
        ip=ir.InsertionPoint(kernel),
    )
    locations = [kernel.location] * len(added) + [argument.location for argument in old.arguments]
    new = made.regions[0].blocks.append(*kinds, arg_locs=locations)
    for argument, other in zip(old.arguments, list(new.arguments)[len(added) :], strict=True):
        argument.replace_all_uses_with(other)
    for view in list(old.operations):
        new.append(view)
    kernel.erase()


def _names(operation: Any) -> list[str]:
    return [str(getattr(named, "name", named)) for named in operation.attributes]


def _drop_uncalled(rewriting: Rewriting) -> None:
    """Erase functions that are not called any more. They are still structured, on which upstream's inliner crashes."""
    for view in list(rewriting.module.body.operations):
        operation = view.operation
        if (
            operation != rewriting.kernel
            and str(operation.attributes["sym_name"].value) not in rewriting.called
        ):
            operation.erase()


def _block(rewriting: Rewriting, block: Any) -> None:
    for view in list(block.operations):
        operation = view.operation
        name = operation.name
        if name.startswith(_KEPT) and name != "arith.select":
            continue
        operation = pointers.enter(rewriting, operation)
        for region in operation.regions:
            for inner in region.blocks:
                _block(rewriting, inner)
        expansion = EXPANSIONS.get(name)
        if name in ("func.call", tpk.Call.OPERATION_NAME):
            calls.call(rewriting, operation, _block)
        elif expansion is not None:
            expansion(rewriting, operation)
        elif name.startswith("tpk.") and name != tpk.Yield.OPERATION_NAME:
            raise rewriting.unsupported(
                operation, "upstream has no such operation", "express this line with other operations"
            )
        else:
            rewriting.kept.add(name)
            kept = pointers.leave(rewriting, operation)
            if kept is not None and kept.name in products.MAPS:
                _drop_attributes(kept)


def _drop_attributes(operation: Any) -> None:
    for name in _names(operation):
        if name.startswith("tpk."):
            del operation.attributes[name]


def _names_in(operation: Any) -> set[str]:
    """The names of an operation and of all inside."""
    found: set[str] = set()

    def visit(inner: Any) -> Any:
        found.add(inner.name)
        return ir.WalkResult.ADVANCE

    operation.walk(visit)
    return found


def _refuse_leftovers(rewriting: Rewriting) -> None:
    """Operations on pointers that are not upstream's memrefs must not be left."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:  # an exception here would end the process
        if operation.name.startswith("llvm."):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    rewriting.module.operation.walk(visit)
    for operation in found:
        raise rewriting.unsupported(
            operation, "its pointer is not derived from an argument", "index from pointer arguments"
        )
