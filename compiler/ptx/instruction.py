"""How an instruction is declared: its forms, its meaning, and the function that translates it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .values import Values

KINDS = {
    "pred": "i1",
    **{f"{letter}{bits}": f"i{bits}" for letter in "bus" for bits in (8, 16, 32, 64)},
    **{name: name for name in ("f16", "bf16", "f32", "f64")},
}
"""The kind of value that a register of each PTX type has."""
INTEGERS = "[.u16|.u32|.u64|.s16|.s32|.s64]"
ROUNDING = "{.rn|.rz|.rm|.rp}"
MODES = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}
"""PTX's rounding modes, and the names that libdevice has for them."""


@dataclass(frozen=True)
class Call:
    """One instruction of a block, for the function that translates it."""

    values: Values
    name: str
    """The opcode without its modifiers."""
    modifiers: tuple[str, ...]
    """What follows the dots of the opcode."""
    reader: Callable[[int, int], Any]
    """The bits of a source operand, by its number and its width."""
    literals: tuple[int | None, ...]
    """Source operands that are integer literals."""
    widths: tuple[int, ...]
    """The bits of the registers that take the result; several if it is unpacked."""

    @property
    def type(self) -> str:
        """The last modifier: the type of the instruction."""
        return self.modifiers[-1]

    @property
    def kind(self) -> str:
        return KINDS[self.type.removesuffix("x2")]

    @property
    def is_signed(self) -> bool:
        return self.type.startswith("s")

    @property
    def mode(self) -> str:
        """The rounding mode, or nothing."""
        return next((name for name in self.modifiers if name in MODES), "")

    def read(self, index: int, kind: str | None = None) -> Any:
        """A source operand as a value of a kind; that of the instruction's type by default."""
        kind = kind or self.kind
        bits = self.reader(index, int(re.sub(r"\D", "", kind)))
        return self.values.as_kind(bits, kind)


@dataclass(frozen=True)
class Instruction:
    """A row of the table."""

    forms: tuple[str, ...]
    """Opcodes: ``{.a|.b}`` is optional, and ``[.a|.b]`` a choice."""
    sources: int
    meaning: str
    """What it computes, for docs/inline-ptx.md. The sources are a, b, c, d."""
    section: str
    """The section of the PTX ISA that defines it; its title, because numbers differ by release."""
    lower: Callable[[Call], Any | Sequence[Any]] | None
    """None for a hint, which has no result and no effect here."""

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_pattern, self.forms)))


def _pattern(form: str) -> str:
    text = re.escape(form)
    for sign, escaped in (("{", r"\{"), ("}", r"\}"), ("[", r"\["), ("]", r"\]"), ("|", r"\|")):
        text = text.replace(escaped, sign)
    return text.replace("{", "(?:").replace("}", ")?").replace("[", "(?:").replace("]", ")")
