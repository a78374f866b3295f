"""Kernels in the linalg form on the CPU: bufferised and lowered by upstream's passes alone, as a second implementation.

It is there to judge the form, not to be fast: buffers come from malloc, and nothing is vectorised.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from triton_porting_kit.abi import block
from triton_porting_kit.abi import kernel as abi
from triton_porting_kit.compiler.defects import InvalidIR
from triton_porting_kit.compiler.loops.ir import element_types
from triton_porting_kit.errors import CompilationError, ToolchainError
from triton_porting_kit.toolchain import mlir
from triton_porting_kit.toolchain.mlir import ir

from . import outlining, routines
from .expansion import GRID, Functions, Text
from .scalars import make_lowerable

_ELEMENTS = "builtin.module(convert-elementwise-to-linalg,canonicalize,cse)"
_BUFFERIZE = (
    "builtin.module(inline,one-shot-bufferize{allow-return-allocs-from-loops=1},buffer-deallocation-pipeline,"
    "canonicalize,cse)"
)
_LOOPS = "builtin.module(inline,convert-linalg-to-loops,canonicalize)"
_LLVM = (
    "builtin.module(inline,symbol-dce,expand-strided-metadata,lower-affine,"
    "math-extend-to-supported-types,arith-emulate-unsupported-floats{source-types=bf16 target-type=f32},"
    "arith-expand{include-bf16=1},"
    "math-expand-ops{ops=rsqrt},convert-scf-to-cf,convert-math-to-llvm,convert-math-to-libm,finalize-memref-to-llvm,convert-to-llvm,"
    "reconcile-unrealized-casts,canonicalize,cse)"
)

_BF16_NUMBER = re.compile(r"\b0xR([0-9A-F]{4})\b")


def lower_to_llvm_ir(module: Any, name: str) -> str:
    """LLVM IR text of a module in the convention triton-shared, with the kernel ABI around the kernel.

    Raises `InvalidIR` if upstream's passes refuse it, and `CompilationError` for what the executor lacks.
    """
    text = str(module)
    try:
        with module.context, ir.Location.unknown():
            kernel = next(op.operation for op in module.body.operations if _name(op.operation) == name)
            kinds = [str(argument.type) for argument in kernel.regions[0].blocks[0].arguments]
            kernel.attributes["sym_name"] = ir.StringAttr.get(_body(name))
            mlir.run_passes(module, _ELEMENTS)
            with outlining.taken_out(module):
                mlir.run_passes(module, _BUFFERIZE)
            _copy_by_loops(module)
            mlir.run_passes(module, _LOOPS)
            make_lowerable(module)
            mlir.run_passes(module, _LLVM)
            routines.define(module)
            entry = ir.Module.parse(_entry(name, kinds))
            for operation in list(entry.body.operations):
                if _name(operation.operation) != _body(name):  # its declaration
                    module.body.append(operation)
            return _by_bits(mlir.to_llvm_ir(module))
    except (mlir.ir.MLIRError, ToolchainError) as error:
        raise InvalidIR.of_mlir("upstream's passes could not lower the linalg form", error, text) from error


def _by_bits(text: str) -> str:
    """LLVM IR that moves bf16 as integers; its arithmetic was expanded. LLVM would pass one, or choose between two, as
    f32 and round it: by an instruction of AVX512-BF16 that takes subnormals as 0, or by a routine of its own library.
    """
    integers = _BF16_NUMBER.sub(lambda found: str(int(found[1], 16)), text)
    return integers.replace("bfloat", "i16")


def kernel_of(module: Any) -> str:
    """The name of the one kernel in the convention triton-shared that a module has.

    Raises `CompilationError` if there is none, or more than one.
    """
    kernels = [op.operation for op in module.body.operations if _is_kernel(op.operation)]
    if len(kernels) == 1:
        return _name(kernels[0])
    raise CompilationError(
        f"the module has {len(kernels)} kernels in the convention triton-shared: public functions whose pointers are "
        "unranked memrefs and whose last six arguments are i32",
        remedy="give what the stage `linalg` writes for one kernel in the convention triton-shared",
    )


def _is_kernel(operation: Any) -> bool:
    """Whether a function is a kernel in the convention triton-shared, and not a function that a kernel calls."""
    if operation.name != "func.func" or not operation.regions[0].blocks:
        return False
    if "sym_visibility" in operation.attributes and operation.attributes["sym_visibility"].value == "private":
        return False
    kinds = [str(argument.type) for argument in operation.regions[0].blocks[0].arguments]
    pointers = [kind for kind in kinds if kind.startswith("memref")]
    return kinds[-GRID:] == ["i32"] * GRID and all(kind.startswith("memref<*x") for kind in pointers)


def _name(operation: Any) -> str:
    return str(operation.attributes["sym_name"].value) if "sym_name" in operation.attributes else ""


def _body(name: str) -> str:
    return f"{name}__linalg"


def _copy_by_loops(module: Any) -> None:
    """Copies of strided memory become `linalg.copy`: upstream lowers them to a routine of its own library."""
    functions = Functions()
    copies: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == "memref.copy":
            copies.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for operation in copies:
        source, target = operation.operands
        body = Text()
        body.do(f"linalg.copy ins(%a0 : {source.type}) outs(%a1 : {target.type})")
        functions.call(operation, "copy", [source, target], [], body, [])
        operation.erase()
    functions.add_to(module)


def _arguments(elements: Sequence[str], offsets: Sequence[int]) -> tuple[list[str], list[tuple[str, str]]]:
    """The lines that read the argument block, and the body's arguments with their types. An unranked memref is its rank
    and the address of its descriptor.
    """
    descriptor = "!llvm.struct<(ptr, ptr, i64)>"
    lines: list[str] = []
    arguments: list[tuple[str, str]] = []
    for i, (element, offset) in enumerate(zip(elements, offsets, strict=True)):
        lines.append(f"%p{i} = llvm.getelementptr %args[{offset}] : (!llvm.ptr) -> !llvm.ptr, i8")
        stored = "i8" if element == "i1" else element
        lines.append(f"%l{i} = llvm.load %p{i} : !llvm.ptr -> {stored}")
        if element == "i1":
            lines.append(f"%b{i} = llvm.trunc %l{i} : i8 to i1")
        if element != "!llvm.ptr":
            arguments.append((f"%b{i}" if element == "i1" else f"%l{i}", element))
            continue
        lines += [
            f"%d{i} = llvm.alloca %one x {descriptor} : (i32) -> !llvm.ptr",
            f"%u{i} = llvm.mlir.poison : {descriptor}",
            f"%v{i} = llvm.insertvalue %l{i}, %u{i}[0] : {descriptor}",
            f"%w{i} = llvm.insertvalue %l{i}, %v{i}[1] : {descriptor}",
            f"%x{i} = llvm.insertvalue %zero, %w{i}[2] : {descriptor}",
            f"llvm.store %x{i}, %d{i} : {descriptor}, !llvm.ptr",
        ]
        arguments += [("%zero", "i64"), (f"%d{i}", "!llvm.ptr")]
    arguments += [(f"%{value}", "i32") for value in ("gx", "gy", "gz", "x", "y", "z")]
    return lines, arguments


def _entry(name: str, kinds: Sequence[str]) -> str:
    """The kernel ABI's symbols, and a loop over programs that calls the body."""
    parameters = kinds[: len(kinds) - GRID]
    elements = ["!llvm.ptr" if kind.startswith("memref") else kind for kind in parameters]
    offsets, _ = block.offsets(element_types.byte_size(element) for element in elements)
    lines, arguments = _arguments(elements, offsets)
    pointers = [offset for element, offset in zip(elements, offsets, strict=True) if element == "!llvm.ptr"]
    given = ", ".join(value for value, _ in arguments)
    types = ", ".join(kind for _, kind in arguments)
    body = "\n    ".join(lines)
    table = [len(pointers), *pointers]
    count = len(table)
    return f"""module {{
  llvm.mlir.global external constant @{name}{abi.SCRATCH}(dense<[0, 0]> : tensor<2xi64>) : !llvm.array<2 x i64>
  llvm.mlir.global external constant @{name}{abi.POINTERS}(dense<{table}> : tensor<{count}xi32>)
      : !llvm.array<{count} x i32>
  llvm.mlir.global external constant @{abi.VERSION_SYMBOL}({abi.VERSION} : i32) : i32
  llvm.func @{_body(name)}({types})
  llvm.func @{name}(%args: !llvm.ptr, %scratch: !llvm.ptr, %begin: i64, %end: i64, %gx: i32, %gy: i32, %gz: i32)
      -> i32 {{
    %one = llvm.mlir.constant(1 : i32) : i32
    %next = llvm.mlir.constant(1 : i64) : i64
    %zero = llvm.mlir.constant(0 : i64) : i64
    %good = llvm.mlir.constant(0 : i32) : i32
    %wx = llvm.zext %gx : i32 to i64
    %wy = llvm.zext %gy : i32 to i64
    {body}
    llvm.br ^head(%begin : i64)
  ^head(%p: i64):
    %more = llvm.icmp "slt" %p, %end : i64
    llvm.cond_br %more, ^run, ^done
  ^run:
    %px = llvm.urem %p, %wx : i64
    %rest = llvm.udiv %p, %wx : i64
    %py = llvm.urem %rest, %wy : i64
    %pz = llvm.udiv %rest, %wy : i64
    %x = llvm.trunc %px : i64 to i32
    %y = llvm.trunc %py : i64 to i32
    %z = llvm.trunc %pz : i64 to i32
    llvm.call @{_body(name)}({given}) : ({types}) -> ()
    %following = llvm.add %p, %next : i64
    llvm.br ^head(%following : i64)
  ^done:
    llvm.return %good : i32
  }}
}}
"""
