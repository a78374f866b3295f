"""Runs the statements of a block on registers whose contents are values of the structured form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import AssemblyError
from .instruction import KINDS, Call
from .parser import (
    Close,
    Declaration,
    Immediate,
    Instruction,
    Open,
    Operand,
    Register,
    Sink,
    Statement,
    Vector,
)
from .table import find
from .values import Values, bits_of, float_bits


class _Cell:
    """A register: its width in bits, and its contents as an integer; None before it is written."""

    def __init__(self, bits: int, value: Any = None) -> None:
        self.bits = bits
        self.value = value


class Machine:
    """The registers of one run of a block, of which `$0` and so on are the operands."""

    def __init__(self, values: Values, operands: Sequence[tuple[int, Any]]) -> None:
        """`operands`: width and contents of the registers `$0`, `$1`, ...; None where the block has to write it."""
        self._values = values
        self._has_hints = False
        self._scopes = [{f"${number}": _Cell(*given) for number, given in enumerate(operands)}]

    def run(self, statements: Sequence[Statement]) -> None:
        """Execute statements. Raises `AssemblyError` for one that cannot be translated."""
        for statement in statements:
            match statement:
                case Open():
                    self._scopes.append({})
                case Close():
                    self._scopes.pop()
                case Declaration():
                    self._declare(statement)
                case Instruction():
                    self._execute(statement)

    def contents(self, number: int) -> Any:
        """The bits of the operand `$number`. Raises `AssemblyError` if it was not written.

        A block of hints has a result that nobody reads, because Triton wants one.
        """
        cell = self._cell(f"${number}")
        if cell.value is None and self._has_hints:
            return self._values.constant(0, f"i{cell.bits}")
        return self._contents(f"${number}")

    def _declare(self, statement: Declaration) -> None:
        if (kind := KINDS.get(statement.type.removesuffix("x2"))) is None:
            raise AssemblyError(f"registers of type .{statement.type} cannot be translated")
        bits = bits_of(kind) * (2 if statement.type.endswith("x2") else 1)
        self._scopes[-1].update({name: _Cell(bits) for name in statement.names})

    def _cell(self, name: str) -> _Cell:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise AssemblyError(f"the register {name} is not declared")

    def _contents(self, name: str) -> Any:
        cell = self._cell(name)
        if cell.value is None:
            raise AssemblyError(f"the register {name} is read before it is written")
        return cell.value

    def _execute(self, statement: Instruction) -> None:
        row = find(statement.opcode)
        if row.lower is None:
            self._has_hints = True
            return
        if len(statement.operands) != row.sources + 1:
            raise AssemblyError(
                f"`{statement.opcode}` takes a result and {row.sources} sources, not {len(statement.operands)} operands"
            )
        destination, *sources = statement.operands
        cells = self._destinations(destination)
        name, *modifiers = statement.opcode.split(".")
        call = Call(
            self._values,
            name,
            tuple(modifiers),
            lambda index, bits: self._source(sources[index], bits),
            tuple(map(_literal, sources)),
            tuple(cell.bits for cell in cells),
        )
        if name == "lop3" and call.literals[3] is None:
            raise AssemblyError("the table of `lop3` has to be a literal")
        result = row.lower(call)
        results = result if len(cells) > 1 else [result]
        for cell, value in zip(cells, results, strict=True):
            self._write(cell, value, statement)

    def _destinations(self, operand: Operand) -> list[_Cell]:
        match operand:
            case Register(name):
                return [self._cell(name)]
            case Vector(parts):
                cells = [cell for part in parts for cell in self._destinations(part)]
                widths = {cell.bits for cell in cells if cell.bits}
                if len(widths) == 1:  # a sink has the width of the others
                    (bits,) = widths
                    return [_Cell(bits) if not cell.bits else cell for cell in cells]
                raise AssemblyError("registers that are unpacked together have different widths")
            case Sink():
                return [_Cell(0)]
            case _:
                raise AssemblyError("an instruction writes to a literal")

    def _source(self, operand: Operand, bits: int) -> Any:
        """The `bits` low bits of a source."""
        v = self._values
        match operand:
            case Register(name):
                return self._fitted(self._contents(name), bits, name)
            case Immediate(value, given):
                if isinstance(value, float) and given is None:
                    return v.constant(float_bits(value, "f64" if bits == 64 else "f32"), f"i{bits}")
                return v.constant(value, f"i{bits}")
            case Vector(parts):
                width = bits // len(parts)
                return v.join([self._source(part, width) for part in parts])
            case _:
                raise AssemblyError("an instruction reads _")

    def _fitted(self, value: Any, bits: int, name: str) -> Any:
        own = bits_of(self._values.kind(value))
        if own < bits:
            raise AssemblyError(f"the register {name} has {own} bits where {bits} are read")
        return self._values.resized(value, bits)

    def _write(self, cell: _Cell, value: Any, statement: Instruction) -> None:
        v = self._values
        value = v.as_bits(value)
        if cell.bits:
            value = v.resized(value, cell.bits)
        if statement.guard and cell.value is not None:  # what an unwritten register holds is not defined
            condition = self._fitted(self._contents(statement.guard), 1, statement.guard)
            new, old = (cell.value, value) if statement.negated else (value, cell.value)
            value = v.select(condition, new, old)
        cell.value = value


def _literal(operand: Operand) -> int | None:
    """The value of an integer literal; None for other operands."""
    return operand.value if isinstance(operand, Immediate) and isinstance(operand.value, int) else None


def check(statements: Sequence[Statement]) -> None:
    """Raise `UnknownInstruction` for the first instruction that is not in the table."""
    for statement in statements:
        if isinstance(statement, Instruction):
            find(statement.opcode)
