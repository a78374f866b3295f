"""Finds the kernel line of a machine instruction after a crash.

Objects have no line tables: they take time to make and are rarely needed. After a crash, the kernel is lowered once
more from its structured form, with a line table. The result must be the same code.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any

from triton_porting_kit.binaries import elf
from triton_porting_kit.binaries.line_table import line_at, lines_of
from triton_porting_kit.compiler.target import CpuTarget
from triton_porting_kit.errors import SourceLocation


def crash_location(
    structured: str, binary: bytes, name: str, size: int, offset: int, target: CpuTarget, **options: Any
) -> SourceLocation | None:
    """The kernel line of the instruction at `offset` bytes in kernel `name` of an object; None if unknown.

    `size` is the number of bytes of code of the kernel that was loaded. `structured` is what the object was compiled
    from, with these `options` of `lower_to_loops`.
    """
    # Importing this package must not load MLIR and LLVM.
    from triton_porting_kit.compiler import codegen
    from triton_porting_kit.compiler.artefacts import structured_module
    from triton_porting_kit.compiler.loops import lower_to_loops

    result = lower_to_loops(structured_module(structured), target, with_places=True, **options)
    again = codegen.emit_object(codegen.lower_to_llvm_ir(result.text, with_lines=True), target)
    code = code_of(binary, name)
    if len(code) != size or code_of(again, name) != code:
        return None
    table = elf.section_named(again, ".debug_line")
    line = None if table is None else line_at(table, offset)
    if table is None or line is None or line > len(result.places):
        return None
    return result.places[_accessing(result.text.splitlines(), line - 1, lines_of(table)) - 1]


_ACCESSES = re.compile(r"\bllvm\.(load|store|intr\.masked|atomicrmw|cmpxchg|call @)|\.tile(load|store)d64")
_DEFINED = re.compile(r"\s*(%\w+) = ")
_NAMES = re.compile(r"%\w+")
_DEPTH = 8
"""Most operations between a load and the computation that uses it: conversions."""


def _accessing(text: list[str], index: int, with_code: Set[int]) -> int:
    """The 1-based line of the memory access behind the instructions of the line with 0-based `index`.

    An instruction may take an operand from memory. LLVM then gives it the line of the computation, and the load has no
    instruction of its own: its line is not in `with_code`.
    """
    defined = {found[1]: number for number, line in enumerate(text) if (found := _DEFINED.match(line))}
    reached, layer = {index}, [index]
    for _ in range(_DEPTH):
        for number in layer:
            if _ACCESSES.search(text[number]) and (number == index or number + 1 not in with_code):
                return number + 1
        operands = {
            defined[name]
            for number in layer
            if number == index or not _ACCESSES.search(text[number])
            for name in _NAMES.findall(text[number])
            if name in defined
        }
        layer = sorted(operands - reached)
        reached |= operands
    return index + 1


def code_of(binary: bytes, name: str) -> bytes:
    """The code bytes of a function of an object. Raises `InvalidModule` if `binary` is not an object."""
    found = elf.read_object(binary)
    for symbol in found.symbols:
        if symbol.name == name and symbol.section:
            return found.sections[symbol.section].content[symbol.value : symbol.value + symbol.size]
    return b""


def pointer_arguments(structured: str) -> list[str]:
    """The names of a kernel's pointer parameters, in order."""
    from triton_porting_kit.compiler.artefacts import structured_module
    from triton_porting_kit.compiler.loops.ir.program import read_program

    program = read_program(structured_module(structured))
    named = zip(program.argument_names, program.body.arguments, strict=True)
    return [name for name, argument in named if argument.type.element == "!llvm.ptr"]
