"""Pieces of C++ text: names, literals, comments and calls, wrapped as clang-format (LLVM) wraps them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

COLUMN_LIMIT = 110


def identifier(name: str) -> str:
    """A C++ name for the parameter `name`. Different names may give the same one."""
    return "arg_" + re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:40]


def literal(value: str) -> str:
    """`value` as a C++ string literal of its UTF-8 bytes."""
    pieces = []
    for byte in value.encode(errors="surrogatepass"):
        char = chr(byte)
        if char in '"\\':
            pieces.append("\\" + char)
        else:
            pieces.append(char if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
    return f'"{"".join(pieces)}"'


def comment(value: str) -> str:
    """`value` changed so that it can neither end the line of a comment nor continue it with a backslash."""
    return value.encode("unicode_escape").decode().replace("\\\\", "\\x5c")


def string_constant(name: str, value: str) -> list[str]:
    """The definition of a C string, over several lines if it is long."""
    head = f"constexpr const char *{name} ="
    if len(head) + len(literal(value)) + 2 <= COLUMN_LIMIT:
        return [f"{head} {literal(value)};"]
    pieces, current = [], ""
    for word in re.findall(r"\S* ?", value):
        if current and len(literal(current + word)) > COLUMN_LIMIT - 6:
            pieces.append(current)
            current = ""
        current += word
    pieces.append(current)
    return [head, *(f"    {literal(piece)}" for piece in pieces[:-1]), f"    {literal(pieces[-1])};"]


def string_array(name: str, values: Sequence[str]) -> list[str]:
    """The definition of an array of C strings, filled line by line."""
    head = f"constexpr const char *{name}[] = {{"
    return _fill(head, [literal(value) for value in values], "};", len(head))


def call(head: str, arguments: Sequence[str], tail: str) -> Iterator[str]:
    """A statement of a function's body: `head` ends with the parenthesis that `tail` closes."""
    yield from ("  " + line for line in _fill(head, arguments, tail, len(head), COLUMN_LIMIT - 2))


def _fill(head: str, items: Sequence[str], tail: str, indent: int, limit: int = COLUMN_LIMIT) -> list[str]:
    lines, current = [], head
    for i, item in enumerate(items):
        last = i == len(items) - 1
        piece = item + (tail if last else ",")
        joined = current + ("" if i == 0 else " ") + piece
        if i > 0 and len(joined) > limit:
            lines.append(current)
            joined = " " * indent + piece
        current = joined
    return [*lines, current]
