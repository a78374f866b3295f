"""A module of loops as one self-contained text in C++, C or OpenCL C."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from triton_porting_kit.abi import kernel
from triton_porting_kit.compiler.artefacts import mlir_module
from triton_porting_kit.compiler.cpp import intrinsics, names, opencl, operations
from triton_porting_kit.compiler.cpp.dialects import CPP, OPENCL, Dialect
from triton_porting_kit.compiler.cpp.emitter import Emitter
from triton_porting_kit.compiler.cpp.header import CppHeader
from triton_porting_kit.compiler.cpp.spaces import address_spaces
from triton_porting_kit.compiler.cpp.support import NAMESPACE
from triton_porting_kit.compiler.cpp.types import SCALARS, cast, parse
from triton_porting_kit.compiler.source_comments import SourceComments
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import mlir

_PARAMETERS = tuple(name for name, _ in kernel.PARAMETERS)


def emit(loops: object, dialect: Dialect, header: CppHeader | None = None, *, buffers: bool = False) -> str:
    """The text of a loops artefact, or of its text, in a dialect: C++17 and C99 with GCC's and Clang's vectors and the
    same kernel ABI, or OpenCL C (docs/contracts.md).

    With `buffers`, each pointer of the argument block is an argument of OpenCL C's kernel function, a buffer, and the
    block holds its offset. Loops for a chip with on-chip memory include `header`, ``tpk_npu.h`` by default; the others
    are self-contained. Raises `CompilationError`, with the kernel line, for what the language cannot express.
    """
    comments = SourceComments(str(loops))
    module = mlir_module(loops)
    emitter = Emitter(dialect, comments, operations.write, header)
    emitter.buffers = buffers
    data: list[str] = []
    exported: list[Any] = []
    declared: list[str] = []
    kernels: list[str] = []
    for view in module.body.operations:
        operation = view.operation
        if operation.name == "llvm.mlir.global":
            if _is_exported(operation):
                exported.append(operation)
            else:
                data += _global(emitter, operation, ())
        elif operation.name == "llvm.func" and not len(operation.regions[0].blocks):
            if not intrinsics.is_call(operation):  # the header declares these
                declared += _declaration(emitter, operation)
            elif dialect is OPENCL:
                raise emitter.unsupported(operation, "an intrinsic of a chip")
        elif operation.name == "llvm.func":
            kernels.append(_kernel_body(emitter, operation, is_local=_is_local(module, operation)))
        else:
            raise emitter.unsupported(operation, "this operation at the top of a module")
    includes = [f"#include <{emitter.intrinsics.header.file}>"] if emitter.intrinsics.used else []
    head = [*(f"// {line}" for line in comments.head), *includes, dialect.preamble]
    support = [*emitter.support.text, *data]
    if dialect is OPENCL:
        return "\n".join([*head, *support, *declared, *_opencl(emitter, exported, kernels)]) + "\n"
    if dialect is CPP:
        support = [f"namespace {NAMESPACE} {{", *support, "} // namespace"]
    taken = names.identifiers([dialect.preamble, *support, *declared, *emitter.lines])
    lines = [*head, *support, "", *declared]
    if dialect is CPP:
        lines = [*head, *support, "", 'extern "C" {', *declared]
    for operation in exported:
        lines += _global(emitter, operation, taken)
    for symbol in kernels:
        lines += ["", *_kernel(symbol, taken, emitter.lines)]
    return "\n".join([*lines, *(["}"] if dialect is CPP else [])]) + "\n"


def _opencl(emitter: Emitter, exported: list[Any], kernels: list[str]) -> list[str]:
    """The constants of the kernel ABI, and the kernel function."""
    lines = [line for operation in exported for line in _global(emitter, operation, ())]
    numbers = opencl.symbols("\n".join(lines))
    for symbol in kernels:
        name = names.in_ascii(symbol)
        work_items, is_local, sub_group = numbers.get(name + kernel.WORK_GROUP, (1, 0, 1))
        scratch, cleared = numbers[name + kernel.SCRATCH]
        shape = opencl.Shape(scratch, cleared, work_items, bool(is_local), sub_group)
        _, *offsets = numbers[name + kernel.POINTERS]
        lines += ["", *opencl.entry(symbol, shape, emitter.lines, offsets if emitter.buffers else ())]
    return lines


def _is_local(module: Any, function: Any) -> bool:
    """Whether the scratch of a kernel is in local memory."""
    name = f"{str(function.attributes['sym_name']).strip(chr(34))}{kernel.WORK_GROUP}"
    for view in module.body.operations:
        operation = view.operation
        if operation.name == "llvm.mlir.global" and str(operation.attributes["sym_name"]) == f'"{name}"':
            return _elements(operation.attributes["value"])[1][1] != "0"
    return False


def _is_exported(operation: Any) -> bool:
    return "external" in str(operation.attributes["linkage"])


def _global(emitter: Emitter, operation: Any, taken: Collection[str]) -> list[str]:
    """A constant: a number, a string, or a table of numbers. The name of an exported one must not be in `taken`."""
    constant, is_opencl = emitter.dialect.constant, emitter.dialect is OPENCL
    name, label = names.labelled(emitter.text(operation, "sym_name"), taken)
    if is_opencl:
        name, label = names.in_ascii(emitter.text(operation, "sym_name")), ""
    attribute = operation.attributes["value"]
    text = str(attribute)
    if text.startswith('"'):
        data = mlir.ir.StringAttr(attribute).value_bytes
        return [f"{constant} char {name}[] = {_quoted(data)};"]
    if text.startswith("dense"):
        element, numbers = _elements(attribute)
        bits = SCALARS[element][1]
        kind = element if element.startswith("f") else f"{'i' if bits > 1 else 'u'}{max(bits, 8)}"
        declaration = f"{kind} {name}[{len(numbers)}]"
        values = f"{{{', '.join(numbers)}}}"
    else:
        number, _, element = text.partition(" : ")
        declaration, values = f"i{SCALARS[element][1]} {name}", number
    if is_opencl or not _is_exported(operation):
        return [f"{constant} {declaration} = {values};"]
    return [f"extern const {declaration}{label};", f"const {declaration} = {values};"]


def _elements(attribute: Any) -> tuple[str, list[str]]:
    """The element type of a dense attribute, and its elements as numbers."""
    dense = mlir.ir.DenseElementsAttr(attribute)
    element = str(dense.type.element_type)
    if element.startswith("f"):
        return element, [float(value).hex() for value in mlir.ir.DenseFPElementsAttr(attribute)]
    numbers = [int(value) for value in mlir.ir.DenseIntElementsAttr(attribute)]
    return element, [str(n) if n > -(1 << 63) else "INT64_MIN" for n in numbers]


def _quoted(data: bytes) -> str:
    """A string literal. The compiler adds the zero byte that ends `data`."""
    body = data[:-1] if data.endswith(b"\0") else data
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in body) + '"'


def _declaration(emitter: Emitter, operation: Any) -> list[str]:
    """The declaration of an external routine, or its definition where it is a function of the language."""
    name = emitter.text(operation, "sym_name")
    found = re.fullmatch(
        r"!llvm\.func<(\w+) \((.*)\)>", emitter.type_text(operation, "function_type").strip()
    )
    if found is None:
        raise emitter.unsupported(operation, "a function of this type")
    if emitter.dialect is OPENCL:
        return [_routine(emitter, operation, name)]
    names = [_c_name(text.strip()) for text in (found[1], *filter(None, found[2].split(",")))]
    return [f"{names[0]} {name}({', '.join(names[1:])});"]


def _routine(emitter: Emitter, operation: Any, name: str) -> str:
    """A routine of the host in OpenCL C, for frames. Raises `CompilationError` if the language has none."""
    pointers = len(re.findall(r"\bptr\b", emitter.type_text(operation, "function_type")))
    definition = opencl.routine(name, pointers, emitter.support)
    if definition is None:
        raise emitter.unsupported(operation, f"the routine {name}")
    return definition


def _c_name(mlir_type: str) -> str:
    if mlir_type == "void":
        return "void"
    if mlir_type == "ptr":
        return "char *"
    type = parse(mlir_type)
    assert type is not None
    return type.element


def _kernel_body(emitter: Emitter, operation: Any, *, is_local: bool) -> str:
    """Write the body of the kernel's function, whose parameters docs/architecture.md defines. Returns its symbol.

    `is_local`: its scratch is in local memory.
    """
    symbol = emitter.text(operation, "sym_name")
    body = operation.regions[0].blocks[0]
    if len(body.arguments) != len(_PARAMETERS):
        raise CompilationError(
            f"the function {symbol} is not a kernel: it has {len(body.arguments)} parameters, not {len(_PARAMETERS)}",
            remedy="give the loops artefact of one kernel, as `tpk compile --emit loops` prints it",
        )
    if emitter.dialect is CPP:
        emitter.statement(f"using namespace {NAMESPACE};")
    elif emitter.dialect is OPENCL:
        arguments = {_PARAMETERS.index("scratch"): "local"} if is_local else {}
        emitter.spaces = address_spaces(operation, emitter.unsupported, arguments)
    emitter.argument_block = body.arguments[0]
    for argument, parameter in zip(body.arguments, _PARAMETERS, strict=True):
        emitter.define(argument, cast(emitter.type_of(argument).name, parameter))
    emitter.block(body)
    return symbol


def _kernel(symbol: str, taken: Collection[str], body: Sequence[str]) -> list[str]:
    """The kernel's function around its body."""
    name, label = names.labelled(symbol, taken)
    types = [kind.removeprefix("std::") for _, kind in kernel.PARAMETERS]
    listed = zip(types, _PARAMETERS, strict=True)
    parameters = ", ".join(f"{kind}{'' if kind.endswith('*') else ' '}{each}" for kind, each in listed)
    head = f"int32_t {name}({parameters})"
    return [*([f"{head}{label};"] if label else []), f"{head} {{", *body, "}"]
