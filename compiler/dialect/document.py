"""The tables of the structured form in docs/architecture.md, generated from the declarations of its operations.

python -m triton_porting_kit.compiler.dialect docs/architecture.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .registry import OPERATIONS
from .schema import Op, Trait, optional, variadic
from .upstream import UPSTREAM

BEGIN = "<!-- written by `make docs` from compiler/dialect: begin -->"
END = "<!-- written by `make docs` from compiler/dialect: end -->"

_SAID = {
    Trait.READS: "reads",
    Trait.WRITES: "writes",
    Trait.DEFERRABLE: "may be deferred",
    Trait.MOVABLE: "may move",
    Trait.TELLS: "tells the user",
    Trait.TERMINATOR: "ends a region",
}


def updated(document: str) -> str:
    """The document with the tables brought up to date. Raises ValueError if it has no place for them."""
    before, found, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"the document lacks the line {BEGIN} or {END}")
    return "\n".join([before + BEGIN, "", *lines(), "", END + after])


def lines() -> Iterator[str]:
    """Both tables, as Markdown."""
    yield "| operation | meaning | traits |"
    yield "|---|---|---|"
    for cls in OPERATIONS.values():
        yield f"| {_form(cls)} | {cls.meaning()[0].lower()}{cls.meaning()[1:].rstrip('.')} | {_traits(cls.traits)} |"
    yield ""
    yield "Of upstream's dialects, a kernel's body has these operations:"
    yield ""
    yield "| traits | operations |"
    yield "|---|---|"
    for traits in dict.fromkeys(UPSTREAM.values()):
        names = ", ".join(f"`{name}`" for name, of in UPSTREAM.items() if of == traits)
        yield f"| {_traits(traits) or 'none of these'} | {names} |"


def _form(cls: type[Op[Any]]) -> str:
    """``tpk.load(base, offset, strides..., mask?) {wrap_dims}``"""
    marks = {optional: "?", variadic: "..."}
    operands = ", ".join(f"{group.name}{marks.get(type(group), '')}" for group in cls.group_table)
    attributes = ", ".join(name if of.required else f"{name}?" for name, of in cls.attribute_table.items())
    text = f"`{cls.OPERATION_NAME}`" + (f"({operands})" if operands else "")
    text += f" {{{attributes}}}" if attributes else ""
    return text + (", with a region" if cls.region_count else "")


def _traits(traits: Trait) -> str:
    return ", ".join(said for trait, said in _SAID.items() if trait in traits)
