"""Line tables, against what an assembler was told by ``.loc`` directives."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from triton_porting_kit.binaries import elf
from triton_porting_kit.binaries.line_table import line_at, lines_of
from triton_porting_kit.toolchain.llvm import target_machine

LINES = [5, 6, 2, 300, 300, 70000, 1, None, 17]
"""Of instructions one after the other; None: none is known."""
GAP = 70
"""Bytes between them: more than one special opcode can tell."""


def debug_lines(body: str) -> bytes | None:
    """The line table of what an assembler makes of `body`."""
    lines = "".join(f'module asm "{line}"\n' for line in (".text", *body.splitlines()))
    machine = target_machine("x86_64-unknown-linux-gnu")
    module = llvm.parse_assembly(f'target triple = "{machine.triple}"\n{lines}')
    return elf.section_named(bytes(machine.emit_object(module)), ".debug_line")


def table() -> bytes:
    """The table of instructions that are as `LINES` says."""
    body = "".join(f".loc 1 {line or 0} 3\nnop\n.fill {GAP - 1}, 1, 0x90\n" for line in LINES)
    found = debug_lines(f".file 1 \\22kernel.py\\22\n{body}")
    assert found is not None
    return found


def test_every_instruction_has_the_line_that_it_was_given() -> None:
    for index, line in enumerate(LINES):
        for offset in (0, GAP - 1):
            assert line_at(table(), index * GAP + offset) == line
    assert line_at(table(), len(LINES) * GAP) is None
    assert lines_of(table()) == set(LINES) - {None}


def test_what_is_damaged_is_refused() -> None:
    section = table()
    with pytest.raises(ValueError, match="truncated"):
        line_at(section[:-1], 1 << 20)
    with pytest.raises(ValueError, match="DWARF 5"):
        line_at(section[:4] + b"\x05\0" + section[6:], 0)


def test_objects_need_not_have_one() -> None:
    assert debug_lines("nop") is None
