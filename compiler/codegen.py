"""From loop-level MLIR to LLVM IR, assembly and object code."""

from __future__ import annotations

import re
from typing import Any

from triton_porting_kit.compiler.artefacts import mlir_module, parsed
from triton_porting_kit.compiler.defects import InvalidIR
from triton_porting_kit.compiler.lane_bits import with_compared_booleans
from triton_porting_kit.compiler.lane_stores import with_scalar_stores
from triton_porting_kit.compiler.loop_hints import annotate_branches
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.errors import ToolchainError
from triton_porting_kit.toolchain import llvm, mlir

_PIPELINE = "builtin.module(convert-scf-to-cf,{}convert-to-llvm,reconcile-unrealized-casts)"
"""The result is not simplified: that would make kernels 0.02 % shorter. Loops are written without what could be
simplified (see `ir.writer` and `ir.builder`), and LLVM's code generator drops what the conversion adds."""
_SHORT = _PIPELINE.format("")
_LONG = _PIPELINE.format("convert-vector-to-llvm{enable-x86=1},convert-math-to-llvm,convert-math-to-libm,")

_WORD = re.compile(r"\w*")
_DIRECT = {
    "math.absf", "math.absi", "math.ceil", "math.copysign", "math.ctlz", "math.ctpop", "math.cttz", "math.floor",
    "math.fma", "math.roundeven", "math.sqrt", "math.trunc", "vector.bitcast", "vector.broadcast", "vector.extract",
    "vector.from_elements", "vector.insert", "vector.interleave", "vector.reduction", "vector.shuffle",
}  # fmt: skip
"""Operations of math and vector that ``convert-to-llvm`` lowers by itself, which saves the passes of those dialects."""


_LINES = "builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly})"


def lower_to_llvm_ir(loops: object, *, with_lines: bool = False) -> str:
    """LLVM IR text of a module of loops, given as an artefact or as text.

    With `with_lines`, each instruction records its line of the loops text. Raises `InvalidIR` for text that is not
    valid.
    """
    text = str(loops)
    module = mlir_module(loops)
    try:
        direct = all(_DIRECT.issuperset(_operations(text, dialect)) for dialect in ("math.", "vector."))
        mlir.run_passes(module, _SHORT if direct else _LONG)
        annotate_branches(module)
        if with_lines:
            mlir.run_passes(module, _LINES)
        return with_scalar_stores(mlir.to_llvm_ir(module))
    except (mlir.ir.MLIRError, ToolchainError) as error:
        raise InvalidIR.of_mlir("MLIR could not lower the loops to LLVM IR", error, text) from error


def _operations(text: str, dialect: str) -> set[str]:
    """Names of the operations of a dialect in a text.

    Splitting is much faster than searching by a regular expression.
    """
    return {dialect + _WORD.match(rest)[0] for rest in text.split(dialect)[1:]}  # type: ignore[index]


def emit_object(llvm_ir: object, target: CpuTarget) -> bytes:
    """A relocatable object for `target` from LLVM IR, given as an artefact or as text.

    Raises `InvalidIR` if LLVM rejects the text.
    """
    return llvm.emit_object(parsed(llvm_ir, lambda text: parse_llvm_ir(text, target)), _machine(target))


def emit_assembly(llvm_ir: str, target: CpuTarget) -> str:
    """Assembly text for `target` from LLVM IR text."""
    return llvm.emit_assembly(parse_llvm_ir(llvm_ir, target), _machine(target))


def _machine(target: CpuTarget) -> Any:
    return llvm.target_machine(target.triple, target.cpu, target.feature_string)


def parse_llvm_ir(llvm_ir: str, target: CpuTarget) -> Any:
    """The module of a text, verified by LLVM. Raises `InvalidIR` with LLVM's message."""
    if target.masks_by_sign:
        from triton_porting_kit.compiler.lane_masks import with_unknown_masks

        llvm_ir = with_unknown_masks(llvm_ir)
    if target.masks_gathers:
        llvm_ir = with_compared_booleans(llvm_ir)
    try:
        return llvm.parse(llvm_ir, target.triple)
    except RuntimeError as error:
        raise InvalidIR(f"LLVM does not take this LLVM IR: {error}", llvm_ir) from error
