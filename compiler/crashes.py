"""Which line of a kernel an instruction comes from, found when it is asked: after a crash.

Objects have no line tables, which would take time to make and that nobody reads. The kernel is lowered once more from
its structured form, with a line table, and must come out as the same code.
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
    """The place that the instruction `offset` bytes into kernel `name` of an object comes from; None if unknown.

    The kernel that was loaded has `size` bytes of code.

    `structured` is what the object was compiled from, with these `options` of `lower_to_loops`.
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
"""Operations between a load and what computes with the element at most: conversions."""


def _accessing(text: list[str], index: int, with_code: Set[int]) -> int:
    """The line, from 1 on, of what accesses memory in the instructions of a line, whose index is from 0 on.

    An instruction may compute with what lies in memory: then LLVM gives it the line of the computation, and the load
    has no instruction of its own, so that its line is not among those `with_code`.
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
    """The instructions of a function of an object. Raises `InvalidModule` for what is no object."""
    found = elf.read_object(binary)
    for symbol in found.symbols:
        if symbol.name == name and symbol.section:
            return found.sections[symbol.section].content[symbol.value : symbol.value + symbol.size]
    return b""


def pointer_arguments(structured: str) -> list[str]:
    """The names of a kernel's parameters that are pointers, in order."""
    from triton_porting_kit.compiler.artefacts import structured_module
    from triton_porting_kit.compiler.loops.ir.program import read_program

    program = read_program(structured_module(structured))
    named = zip(program.argument_names, program.body.arguments, strict=True)
    return [name for name, argument in named if argument.type.element == "!llvm.ptr"]
