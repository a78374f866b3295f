"""Conversion of kernel and parameter names to valid C++ names without conflicts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    _Bool alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int linux long
    main mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast std struct switch
    template this thread_local throw true try typedef typeid typename typeof union unix unsigned using virtual void
    volatile wchar_t while xor xor_eq
    """,
    )
)
_LIBRARY = re.compile(
    r"\w+_t|U?INT\w*_(MIN|MAX|WIDTH|C)|(PTRDIFF|SIG_ATOMIC|SIZE|WCHAR|WINT)_(MIN|MAX|WIDTH)|_[_A-Z]\w*"
)
"""Names that <stdint.h> defines or may define, and names reserved for the implementation."""
_COMMENT_OR_TEXT = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')


def in_ascii(text: str) -> str:
    """`text` with the numbers of the letters that are not ASCII."""
    return "".join(c if c.isascii() else f"_u{ord(c):x}" for c in text)


def plain(text: str) -> str:
    """`text` with only ASCII letters, digits and single underscores: ``D.shape.0`` becomes ``D_shape_0``."""
    return re.sub(r"[\W_]+", "_", in_ascii(text), flags=re.ASCII)


def identifiers(texts: Iterable[str]) -> set[str]:
    """All words of C++ text outside of comments and string literals."""
    return {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", _COMMENT_OR_TEXT.sub(" ", text))}


def labelled(symbol: str, taken: Collection[str]) -> tuple[str, str]:
    """A C++ name for a symbol, and the asm label that it needs if the symbol itself is not usable as a name.

    `taken` are the words that the rest of the text uses.
    """
    is_name = re.fullmatch(r"[A-Za-z_]\w*", symbol, re.ASCII) and not _LIBRARY.fullmatch(symbol)
    if is_name and symbol not in _KEYWORDS and symbol not in taken:
        return symbol, ""
    name = f"tpk_{plain(symbol)}"
    while name in taken:
        name += "_"
    return name, f' __asm__("{symbol}")'
