"""The executor's definitions of external functions: calls of the host's routines."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.loops.arithmetic.library import ROUTINES
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain.mlir import ir

from . import host_messages
from .functions import PREFIX, parts
from .messages import FAIL, PRINT


def define(module: Any) -> None:
    """Define each external function that a module of the LLVM dialect calls.

    Raises `CompilationError` for one that the host has no routine for.
    """
    wanted = [
        (view.operation, str(view.operation.attributes["sym_name"].value))
        for view in module.body.operations
        if "sym_name" in view.operation.attributes
    ]
    for operation, symbol in wanted:
        if symbol.startswith(PREFIX):
            text = _definition(symbol)
        elif symbol.startswith((FAIL, PRINT)):
            text = host_messages.definition(symbol, operation)
        else:
            continue
        operation.erase()
        made = ir.Module.parse(text)
        for view in list(made.body.operations):
            name = str(view.operation.attributes["sym_name"].value)
            if name == symbol or not _has(module, name):
                module.body.append(view)


def _has(module: Any, name: str) -> bool:
    return any(
        "sym_name" in view.operation.attributes and str(view.operation.attributes["sym_name"].value) == name
        for view in module.body.operations
    )


def _definition(symbol: str) -> str:
    name, kinds = parts(symbol)
    *operands, result = kinds
    narrow = {"f16", "bf16"}
    wide = ["f32" if kind in narrow else kind for kind in kinds]
    suffix = "f64" if "f64" in wide else "f32"
    if ROUTINES.get(name) == ("f64",) and suffix == "f32":
        suffix, wide = "f64", ["f64" if kind == "f32" else kind for kind in wide]
    if suffix not in ROUTINES.get(name, ()):
        raise CompilationError(
            f"the executor of the linalg form has no function {name} of {', '.join(operands)}",
            remedy="compile without form='linalg'",
        )
    lines = []
    for i, (kind, used) in enumerate(zip(operands, wide, strict=False)):
        value = f"%a{i}"
        if kind != used:
            lines.append(f"%e{i} = llvm.fpext {value} : {kind} to {used}")
            value = f"%e{i}"
        lines.append(f"%m{i} = llvm.alloca %one x {used} : (i64) -> !llvm.ptr")
        lines.append(f"llvm.store {value}, %m{i} : {used}, !llvm.ptr")
    lines.append(f"%r = llvm.alloca %one x {wide[-1]} : (i64) -> !llvm.ptr")
    given = ", ".join(["%one", "%r", *(f"%m{i}" for i in range(len(operands)))])
    types = ", ".join(["i64", *["!llvm.ptr"] * (1 + len(operands))])
    routine = f"tpk_math_{name}_{suffix}"
    lines.append(f"llvm.call @{routine}({given}) : ({types}) -> ()")
    lines.append(f"%found = llvm.load %r : !llvm.ptr -> {wide[-1]}")
    value = "%found"
    if result != wide[-1]:
        lines.append(f"%cut = llvm.fptrunc %found : {wide[-1]} to {result}")
        value = "%cut"
    parameters = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(operands))
    body = "\n  ".join(lines)
    return f"""llvm.func @{routine}({types})
llvm.func internal @{symbol}({parameters}) -> {result} {{
  %one = llvm.mlir.constant(1 : i64) : i64
  {body}
  llvm.return {value} : {result}
}}
"""
