"""The importer from TTIR to the structured form: applies a rule to every operation of a module's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler import artefacts
from triton_porting_kit.compiler.dialect.operations import Gather, Load, NumPrograms, ProgramId, Range
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.on_demand import function
from triton_porting_kit.toolchain import mlir
from triton_porting_kit.toolchain.mlir import ir

from . import control, memory, tensors
from .diagnostics import fail
from .rewriter import Rewriter
from .types import Types

# What few kernels need.
_orient = function("compiler.structured.orientation", "orient")
_select_elements = function("compiler.structured.selecting", "select_elements")
_structure_branches = function("compiler.structured.branches", "structure_branches")
_unroll = function("compiler.structured.unrolling", "unroll")

_DIALECTS = ("arith", "func", "linalg", "llvm", "math", "scf", "tensor", "ub")
_TIDY = "builtin.module(canonicalize{region-simplify=disabled},cse,loop-invariant-code-motion)"

_HANDLERS: dict[str, Callable[[Rewriter, Any], None]] = {
    **tensors.HANDLERS,
    **dict.fromkeys(("scf.for", "scf.while", "scf.if", "arith.select"), control.carrier),
    "tt.return": control.function_return,
    "tt.call": control.call,
    "tt.load": memory.load,
    "tt.store": memory.store,
    "tt.atomic_rmw": memory.atomic_rmw,
    "tt.atomic_cas": memory.atomic_cas,
    "tt.atomic_load": memory.atomic_load,
    "tt.atomic_store": memory.atomic_store,
    "tt.atomic_poll": memory.atomic_poll,
    **dict.fromkeys(("arith.divsi", "arith.remsi"), function("compiler.structured.naturals", "division")),
    **dict.fromkeys(("cf.br", "cf.cond_br"), control.branch),
}
_LOADS = frozenset(cls.OPERATION_NAME for cls in (Load, Gather))
_ERASABLE = _LOADS | {cls.OPERATION_NAME for cls in (Range, ProgramId, NumPrograms)}
"""Operations that are erased if they are unused and not volatile."""


def import_ttir(
    text: str,
    context: Any | None = None,
    *,
    promises: bool = False,
    turns: bool = True,
    unrolls: bool = False,
) -> Any:
    """The structured form of a TTIR module in generic text (`toolchain.compat.generic_text`).

    With `promises`, accesses assume that indices fit 32 bits wherever that depends on arguments and the grid alone. The
    kernel's attribute `tpk.promises` then has the steps of `abi.intervals` that a launch must evaluate first.
    Without it, such accesses check at run time. With `turns`, tiles are turned where memory is contiguous along their
    first dimension (see `orientation`). With `unrolls`, short loops over tiles are written out (see `unrolling`).

    Returns an upstream MLIR module marked `tpk.structured`, in `context` or a new one, which MLIR's verifier accepts.
    Operations keep their locations.
    Raises `CompilationError` for what cannot be imported, with the kernel's source line.
    """
    module = mlir.parse_module(text, context)
    with module.context as current, ir.Location.unknown():
        for name in _DIALECTS:
            _ = current.dialects[name]
        if unrolls and '"scf.for"' in text:
            _unroll(module)
        if '"scf.if"' in text:
            _select_elements(module)
        types = Types()
        for defined in list(module.body.operations):
            if defined.operation.name == "tt.func":
                _import_function(types, defined, promises)
        module.operation.attributes["tpk.structured"] = ir.IntegerAttr.get(types.i32, 1)
        if '"cf.' in text or " cf." in text:  # not those of scf
            _structure_branches(module)
        artefacts.verify(module)  # this module was built in memory, so no parser has verified it
        mlir.run_passes(module, _TIDY)
        # Only these make tiles of two dimensions, and products are not turned.
        if turns and "tt.expand_dims" in text and "tt.dot" not in text and _orient(module):
            artefacts.verify(module)
        while _erase_unused(module):
            mlir.run_passes(module, _TIDY)  # what only these loads used is unused now
    return module


def _import_function(types: Types, function: Any, promises: bool) -> None:
    promises = promises and control.is_kernel(function)
    rewriter = Rewriter(types, function.regions[0].blocks[0], promises=promises)
    _import_region(rewriter, function.regions[0])
    control.function(rewriter, function)
    rewriter.finish()


def _import_region(rewriter: Rewriter, region: Any) -> None:
    for block in region.blocks:
        # New operations are inserted beside the old ones: iterate over the old ones only.
        for operation in list(block.operations):
            try:
                _import_operation(rewriter, operation)
            except PortingKitError:
                raise
            except Exception as error:  # a defect, but one to report with its kernel line
                fail(
                    operation,
                    f"the import failed with {type(error).__name__}: {error}",
                    "this is a defect of the importer: please report the kernel",
                )


def _import_operation(rewriter: Rewriter, operation: Any) -> None:
    name = operation.operation.name
    if name.endswith(".return") and name != "tt.return":
        return  # the terminator of a combining region, which is moved as a whole
    handler = _HANDLERS.get(name)
    if name in ("tt.reduce", "tt.scan", "tt.map_elementwise"):
        _import_region(rewriter, operation.regions[0])
    results = operation.results
    if name in control.POINTER_OPS and rewriter.types.info(results[0]).is_pointer:
        rewriter.dead.append(operation)
    elif handler is not None:
        handler(rewriter, operation)
    elif name.startswith(("tt.", "ttg.", "ttng.")):
        tensors.unsupported(rewriter, operation)
    if name.startswith("scf."):
        for region in operation.regions:
            _import_region(rewriter, region)


def _erase_unused(module: Any) -> bool:
    """Erase unused loads, ranges and program ids, which upstream passes do not know to be pure.

    On chips, nothing waits for an unused load, so a store to the same place could overtake it. Returns whether there
    was one.
    """
    found, go_on = [], ir.WalkResult.ADVANCE

    def visit(operation: Any) -> Any:
        if operation.name in _ERASABLE and "volatile" not in operation.attributes:
            found.append(operation)
        return go_on

    module.operation.walk(visit)
    unused = [operation for operation in found if not any(True for _ in operation.results[0].uses)]
    loads = any(operation.name in _LOADS for operation in unused)
    for operation in unused:
        operation.operation.erase()
    return loads
