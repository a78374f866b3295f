"""Reads the text of an assembly block: statements, ``{ ... }`` scopes, ``.reg`` declarations, guards and operands.

The grammar is that of PTX ISA, chapter "Syntax", as far as blocks without labels and memory use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .errors import AssemblyError, UnknownInstruction


@dataclass(frozen=True)
class Register:
    """A register: `$0` of the block's operands, or a name that is declared in it."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A literal: its value, and for ``0f...`` and ``0d...`` its bits."""

    value: int | float
    bits: int | None = None


@dataclass(frozen=True)
class Vector:
    """``{a, b}``: registers that are packed into one, or unpacked from one. None is the sink ``_``."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True)
class Sink:
    """``_``: a result that is not used."""


Operand = Register | Immediate | Vector | Sink


@dataclass(frozen=True)
class Declaration:
    """``.reg .b32 a, b<2>``: the type without its dot, and the names of the registers."""

    type: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Instruction:
    """An instruction with all its modifiers; `guard` is the predicate, and `negated` whether it is ``@!p``."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: str = ""
    negated: bool = False


class Open:
    """The beginning of a scope."""


class Close:
    """The end of a scope."""


Statement = Declaration | Instruction | Open | Close

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARATION = re.compile(r"\.reg\s+\.(\w+)\s+(.+)", re.DOTALL)
_INSTRUCTION = re.compile(r"(?:@(!?)\s*([%$\w]+)\s+)?([a-z_]\w*(?:\.\w+|::\w+)*)(?:\s+(.*))?", re.DOTALL)
_NAME = re.compile(r"\$\d+|%?[A-Za-z_$][\w$]*(?:\.[xyzw])?")
_COUNTED = re.compile(r"(%?[\w$]+)<(\d+)>")
_INTEGER = re.compile(r"-?(?:0[xX][\da-fA-F]+|0[bB][01]+|\d+)U?")
_FLOAT = re.compile(r"-?\d+\.\d*(?:[eE][-+]?\d+)?|-?\d+[eE][-+]?\d+")
_BITS = re.compile(r"0[fF]([\da-fA-F]{8})|0[dD]([\da-fA-F]{16})")


def parse(text: str) -> list[Statement]:
    """The statements of a block, in order. Raises `AssemblyError` for what the grammar does not have."""
    return list(_statements(_COMMENT.sub(" ", text)))


def _statements(text: str) -> Iterator[Statement]:
    place, depth = 0, 0
    while place < len(text):
        here = text[place]
        if here.isspace() or here == ";":
            place += 1
        elif here in "{}":
            depth += 1 if here == "{" else -1
            if depth < 0:
                raise AssemblyError("the assembly has a } without a {")
            yield Open() if here == "{" else Close()
            place += 1
        else:
            end = text.find(";", place)
            end = len(text) if end < 0 else end
            yield _statement(text[place:end].strip())
            place = end + 1
    if depth:
        raise AssemblyError("the assembly has a { without a }")


def _statement(text: str) -> Statement:
    if (declared := _DECLARATION.fullmatch(text)) is not None:
        return Declaration(declared[1], tuple(_declared(declared[2])))
    found = _INSTRUCTION.fullmatch(text)
    if found is None:
        raise UnknownInstruction(" ".join(text.split()))
    negated, guard, opcode, operands = found.groups()
    if operands and (operands.lstrip().startswith(":") or "[" in operands or "|" in operands):
        raise UnknownInstruction(opcode)  # labels, memory and pairs of predicates
    return Instruction(opcode, tuple(map(_operand, _split(operands or ""))), guard or "", negated == "!")


def _declared(text: str) -> Iterator[str]:
    for part in map(str.strip, text.split(",")):
        counted = _COUNTED.fullmatch(part)
        if counted is not None:
            yield from (f"{counted[1]}{number}" for number in range(int(counted[2])))
        elif _NAME.fullmatch(part):
            yield part
        else:
            raise AssemblyError(f"{part!r} is not the name of a register")


def _split(text: str) -> list[str]:
    """Operands, separated by commas outside of braces."""
    parts = re.findall(r"\{[^}]*\}|[^,{\s][^,{]*", text)
    return [part.strip() for part in parts if part.strip()]


def _operand(text: str) -> Operand:
    if text.startswith("{"):
        return Vector(tuple(map(_operand, _split(text.strip("{}")))))
    if text == "_":
        return Sink()
    if (found := _BITS.fullmatch(text)) is not None:
        bits = int(found[1] or found[2], 16)
        return Immediate(bits, bits)
    if _INTEGER.fullmatch(text):
        return Immediate(_integer(text.removesuffix("U")))
    if _FLOAT.fullmatch(text):
        return Immediate(float(text))
    if _NAME.fullmatch(text):
        return Register(text)
    raise AssemblyError(f"{text!r} is not an operand")


def _integer(text: str) -> int:
    """An integer literal; a leading 0 makes it octal."""
    octal = re.fullmatch(r"(-?)0([0-7]+)", text)
    return int(f"{octal[1]}0o{octal[2]}", 0) if octal else int(text, 0)
