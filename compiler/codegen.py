"""From loop-level MLIR to LLVM IR, assembly and object code."""

from __future__ import annotations

import re
from typing import Any

from triton_porting_kit.compiler.artefacts import mlir_module
from triton_porting_kit.compiler.lane_stores import with_scalar_stores
from triton_porting_kit.compiler.loop_hints import annotate_branches
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.errors import CompilationError, ToolchainError
from triton_porting_kit.toolchain import llvm, mlir

_PIPELINE = (
    "builtin.module(convert-scf-to-cf,{}convert-to-llvm,reconcile-unrealized-casts,"
    "canonicalize{{max-iterations=1}},cse)"  # the second iteration only finds that nothing is left
)
_SHORT = _PIPELINE.format("")
_LONG = _PIPELINE.format("convert-vector-to-llvm{enable-x86=1},convert-math-to-llvm,convert-math-to-libm,")

_OPERATIONS = (re.compile(r"math\.\w+"), re.compile(r"vector\.\w+"))  # one for both would be much slower
_DIRECT = {
    "math.absf", "math.absi", "math.ceil", "math.copysign", "math.ctlz", "math.ctpop", "math.cttz", "math.floor",
    "math.fma", "math.roundeven", "math.sqrt", "math.trunc", "vector.bitcast", "vector.broadcast", "vector.extract",
    "vector.from_elements", "vector.interleave", "vector.reduction", "vector.shuffle",
}  # fmt: skip
"""Operations of these dialects that ``convert-to-llvm`` knows without their own passes, which it saves."""


def lower_to_llvm_ir(loops: str) -> str:
    """LLVM IR text of a module of loops. Raises `CompilationError` for what is none."""
    module = mlir_module(loops, "llir")
    try:
        direct = all(_DIRECT.issuperset(pattern.findall(loops)) for pattern in _OPERATIONS)
        mlir.run_passes(module, _SHORT if direct else _LONG)
        annotate_branches(module)
        return with_scalar_stores(mlir.to_llvm_ir(module))
    except (mlir.ir.MLIRError, ToolchainError) as error:
        raise CompilationError(
            f"MLIR could not lower the loops to LLVM IR: {error}",
            remedy="check the file that overrides the loops; without one this is a defect: please report the kernel",
        ) from error


def emit_object(llvm_ir: str, target: CpuTarget) -> bytes:
    """A relocatable object for `target` from LLVM IR text. Raises `CompilationError` where LLVM refuses it."""
    return llvm.emit_object(_parse(llvm_ir, target), _machine(target))


def emit_assembly(llvm_ir: str, target: CpuTarget) -> str:
    """Assembly text for `target` from LLVM IR text."""
    return llvm.emit_assembly(_parse(llvm_ir, target), _machine(target))


def check_llvm_ir(llvm_ir: str, target: CpuTarget) -> None:
    """Raise `CompilationError` with LLVM's message unless this is a module that it takes for `target`."""
    _parse(llvm_ir, target)


def _machine(target: CpuTarget) -> Any:
    return llvm.target_machine(target.triple, target.cpu, target.feature_string)


def _parse(llvm_ir: str, target: CpuTarget) -> Any:
    try:
        return llvm.parse(llvm_ir, target.triple)
    except RuntimeError as error:
        raise CompilationError(f"LLVM does not take this LLVM IR: {error}") from error
