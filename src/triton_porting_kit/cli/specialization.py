"""Parsing the types, hints and constants that a kernel is compiled for."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from triton_porting_kit.abi import elements
from triton_porting_kit.cli.errors import UserError

SCALARS = tuple(name for name in elements.PARAMETERS if name != "f32")
ELEMENTS = (*SCALARS, *(name for name, element in elements.ELEMENTS.items() if element.is_minifloat))
HINTS = {"16": ["tt.divisibility", 16], "2g": ["tt.pointer_range", 32]}
"""Hints after a type and a colon: a multiple of 16; a pointer to less than 2 GiB of memory."""

_POINTER = re.compile(rf"\*+k?({'|'.join(ELEMENTS)})")
_DESCRIPTOR = re.compile(rf"tensordesc<({'|'.join(ELEMENTS)})\[\d+(,\d+)*\]>")


@dataclass(frozen=True)
class Specialization:
    """The types, constants and hints that a kernel is compiled for, in the form that Triton's front end expects.

    `signature`: the types of arguments by name, in order: ``constexpr`` for a constant, a tuple of types for a tuple.
    `constants`: the values of constants by name, or by position within tuples. `attributes`: hints by position.
    """

    signature: Mapping[str, Any]
    constants: Mapping[Any, Any]
    attributes: Mapping[tuple[int, ...], Any]


def split(text: str) -> list[str]:
    """Split a text at commas, except commas within brackets or quotes."""
    items, depth, quote, start = [], 0, "", 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
        elif char == "," and depth == 0:
            items.append(text[start:at].strip())
            start = at + 1
    items.append(text[start:].strip())
    return [item for item in items if item]


def pairs(texts: Sequence[str], what: str) -> dict[str, str]:
    """Parse texts like ``a=1,b=2`` into one dictionary of texts. Raises `UserError`; `what` names an item in it."""
    found: dict[str, str] = {}
    for item in (item for text in texts for item in split(text)):
        name, equals, value = item.partition("=")
        if not equals or not name.strip().isidentifier():
            raise UserError(f"{what} {item!r} is not of the form NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def literal(text: str, module: ModuleType | None = None) -> Any:
    """Parse a value of the command line: a Python literal, a ``tl.`` type, or a name in the kernel's file."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        pass
    if text.startswith("tl."):
        import triton.language as tl

        if hasattr(tl, text[3:]):
            return getattr(tl, text[3:])
    elif module is not None and hasattr(module, text):
        return getattr(module, text)
    quoted = f", nor a name in {module.__name__}" if module is not None else ""
    raise UserError(f"the value {text!r} is neither a Python literal{quoted}; quote it if it is a string")


def specialize(
    kernel: Any, signature: str, constants: Sequence[str], module: ModuleType | None = None
) -> Specialization:
    """Combine types and constants for `kernel`. Raises `UserError` for arguments that are missing or do not fit."""
    names: list[str] = list(kernel.arg_names)
    types = _types(names, signature)
    values: dict[Any, Any] = {
        name: literal(text, module) for name, text in pairs(constants, "the constant").items()
    }
    unknown = [name for name in (*types, *values) if name not in names]
    if unknown:
        raise UserError(f"{kernel.__name__} has no argument {unknown[0]!r}; it has {', '.join(names)}")

    attributes: dict[tuple[int, ...], Any] = {}
    checked: dict[str, Any] = {}
    for position, name in enumerate(names):
        if name in values:
            checked[name] = "constexpr"
        elif name in types:
            found = _Types(module)
            checked[name] = found.read(name, types[name], (position,))
            if checked[name] != "constexpr" and kernel.params[position].is_constexpr:
                raise UserError(
                    f"{name} is a constexpr: give its value, not its type (--constants {name}=VALUE)"
                )
            values.update({path if path[1:] else name: value for path, value in found.values.items()})
            attributes.update(found.hints)
        elif kernel.params[position].has_default:
            values[name], checked[name] = kernel.params[position].default, "constexpr"
    missing = [name for name in names if name not in checked]
    if missing:
        raise UserError(_remedy(kernel, missing))
    return Specialization(checked, values, attributes)


def _types(names: Sequence[str], signature: str) -> dict[str, str]:
    types: dict[str, str] = {}
    for position, item in enumerate(split(signature)):
        name, equals, type_ = item.partition("=")
        if equals:
            types[name.strip()] = type_.strip()
        elif position < len(names):
            types[names[position]] = item
        else:
            raise UserError(f"the signature has more than the {len(names)} arguments {', '.join(names)}")
    return types


class _Types:
    """Reads the type of one argument. `values` and `hints` are by position, also within tuples."""

    def __init__(self, module: ModuleType | None) -> None:
        self._module = module
        self.values: dict[tuple[int, ...], Any] = {}
        self.hints: dict[tuple[int, ...], Any] = {}

    def read(self, name: str, text: str, path: tuple[int, ...]) -> Any:
        """Parse a type, a value (``constexpr``), or a tuple of them."""
        if text.startswith("(") and text.endswith(")"):
            items = split(text[1:-1])
            return tuple(self.read(f"{name}[{i}]", item, (*path, i)) for i, item in enumerate(items))
        type_, hints = _check(name, text)
        if type_ is None:
            self.values[path] = literal(text, self._module)
            return "constexpr"
        if hints:
            self.hints[path] = [HINTS[hint] for hint in hints]
        return type_


def _check(name: str, text: str) -> tuple[str | None, list[str]]:
    """The type and the hints of an argument; the type is None if `text` is a value."""
    if re.fullmatch(r"[-\d.].*|None|True|False", text):
        return None, []
    type_, *hints = (part.strip() for part in text.split(":"))
    type_ = type_.replace(", ", ",")
    if not (type_ in SCALARS or _POINTER.fullmatch(type_) or _DESCRIPTOR.fullmatch(type_)):
        raise UserError(
            f"argument {name} has the unknown type {text!r}; the types are {', '.join(SCALARS)}, pointers (*fp32; "
            f"also to {', '.join(ELEMENTS[len(SCALARS) :])}), tensordesc<fp16[64,64]> and tuples of them (i32, *fp32)"
        )
    for hint in hints:
        if hint not in HINTS:
            raise UserError(
                f"argument {name} has the unknown hint {hint!r}; the hints are 16 (*fp32:16, i32:16) and, for "
                "pointers, 2g (*fp32:16:2g)"
            )
    return type_, hints


def _remedy(kernel: Any, missing: Sequence[str]) -> str:
    """The error for missing arguments: what to add to the command line."""
    constant = [p.name for p in kernel.params if p.name in missing and p.is_constexpr]
    typed = [name for name in missing if name not in constant]
    parts = []
    if typed:
        parts.append(
            f'the signature lacks a type for {", ".join(typed)} (--signature "{typed[0]}=*fp32, ...")'
        )
    if constant:
        example = ",".join(f"{name}=..." for name in constant)
        parts.append(f"no value was given for {', '.join(constant)} (--constants {example})")
    return f"{kernel.__name__}: {'; '.join(parts)}"
