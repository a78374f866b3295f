"""The mutations of C++ sources, found in the token stream without a parser.

Binary operators are recognized by the blanks that clang-format puts around them. Mutations that do not compile, or
compile to the same code, are skipped later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triton_porting_kit.conformance.mutants.mutation import CPP, Mutation

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<directive>^[ \t]*\#(?:[^\n\\]|\\.)*)
    |(?P<text>(?:u8|[uUL])?R"(?P<mark>[^\s()\\]*)\(.*?\)(?P=mark)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
    |(?P<number>(?:0[xX][0-9a-fA-F']+|0[bB][01']+|(?:[0-9][0-9']*\.?[0-9']*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)[a-zA-Z]*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><<=|>>=|<=>|->\*|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^<>=!~?:;,.(){}\[\]])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_SIGNS = {
    "comparison": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "logic": {"&&": "||", "||": "&&"},
    "arithmetic": {
        "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|",
        "+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "%=": "/=", "<<=": ">>=", ">>=": "<<=", "&=": "|=",
        "|=": "&=", "^=": "|=", "++": "--", "--": "++",
    },
    "sign": {"!": "", "~": ""},
}  # fmt: skip
_PREFIXED = frozenset({"++", "--", "!", "~"})
_NO_STATEMENT = frozenset(
    {
        "return", "if", "else", "for", "while", "do", "switch", "case", "default", "using", "namespace", "struct",
        "class", "enum", "union", "template", "typedef", "static", "static_assert", "extern", "public", "private",
        "protected", "friend", "try", "catch", "goto", "operator", "constexpr", "inline", "explicit", "virtual", "asm",
    }
)  # fmt: skip
_MADE = frozenset({"throw", "static_assert"})
"""Statements that start with these words are not mutated: they are messages, or no run-time code."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def cpp_mutations(path: str, source: bytes) -> list[Mutation]:
    """All mutations of a file. Some of them do not compile."""
    return list(_Sites(path, source))


class _Sites:
    def __init__(self, path: str, source: bytes) -> None:
        self._path, self._source = path, source
        self._tokens = list(_tokens(source))

    def __iter__(self) -> Iterator[Mutation]:
        silent = self._silent()
        for number, token in enumerate(self._tokens):
            if number not in silent:
                yield from self._changes(number, token)
        for first, last in self._statements():
            begin, end = self._tokens[first].start, self._tokens[last].end
            yield self._mutation("statement", begin, end, ";")

    def _changes(self, number: int, token: _Token) -> Iterator[Mutation]:
        if token.kind == "sign":
            for operator, table in _SIGNS.items():
                if token.text in table and (token.text in _PREFIXED or self._stands_apart(token)):
                    yield self._mutation(operator, token.start, token.end, table[token.text])
        elif token.kind == "number":
            yield self._mutation("constant", token.start, token.end, f"({token.text} + 1)")
        elif token.text in ("true", "false"):
            yield self._mutation(
                "constant", token.start, token.end, "false" if token.text == "true" else "true"
            )
        elif token.text in ("if", "while") and self._text(number + 1) == "(":
            last = _closing(self._tokens, number + 1)
            begin, end = self._tokens[number + 1].end, self._tokens[last].start
            inside = [t.text for t in self._tokens[number + 2 : last]]
            if "=" in inside or ";" in inside or self._text(last + 1) == ";":
                return  # a declaration in the condition, or the end of a `do` loop
            for value in ("true", "false") if token.text == "if" else ("false",):
                yield self._mutation("condition", begin, end, value)

    def _stands_apart(self, token: _Token) -> bool:
        """Whether blanks surround an operator: clang-format puts them around binary operators only."""
        return (
            self._source[token.start - 1 : token.start].isspace()
            and self._source[token.end : token.end + 1].isspace()
        )

    def _text(self, number: int) -> str:
        return self._tokens[number].text if 0 <= number < len(self._tokens) else ""

    def _silent(self) -> set[int]:
        """The tokens that are not mutated, see `_MADE`."""
        found: set[int] = set()
        for number, token in enumerate(self._tokens):
            if token.text in _MADE:
                while number < len(self._tokens) and self._text(number) != ";":
                    found.add(number)
                    number += 1
        return found

    def _statements(self) -> Iterator[tuple[int, int]]:
        """The first and last tokens of simple statements, and of declarations that look like statements."""
        first, depth = 0, 0
        for number, token in enumerate(self._tokens):
            if token.text in ("(", "["):
                depth += 1
            elif token.text in (")", "]"):
                depth -= 1
                if token.text == ")" and depth == 0 and self._heads(number):
                    first = number + 1
            elif depth == 0 and token.text in ("{", "}", "else", "do", ":"):
                first = number + 1
            elif depth == 0 and token.text == ";":
                if number > first and self._text(first) not in _NO_STATEMENT:
                    yield first, number
                first = number + 1

    def _heads(self, last: int) -> bool:
        """Whether a closing parenthesis ends the head of `if`, `for`, `while` or `switch`."""
        depth = 0
        for number in range(last, -1, -1):
            depth += {")": 1, "(": -1}.get(self._text(number), 0)
            if depth == 0:
                return self._text(number - 1) in ("if", "for", "while", "switch", "constexpr")
        return False

    def _mutation(self, operator: str, start: int, end: int, text: str) -> Mutation:
        line = self._source.count(b"\n", 0, start) + 1
        return Mutation(
            self._path,
            CPP,
            operator,
            start,
            end,
            text,
            line,
            (line, line + self._source.count(b"\n", start, end)),
        )


def _tokens(source: bytes) -> Iterator[_Token]:
    """The tokens of a source except comments, directives and literals of text, with byte offsets."""
    text = source.decode()
    at = bytes_at = 0
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        bytes_at += len(text[at : found.start()].encode())
        at, end = found.start(), bytes_at + len(found[0].encode())
        if kind in ("number", "word", "sign"):
            yield _Token(kind, found[0], bytes_at, end)


def _closing(tokens: Sequence[_Token], opening: int) -> int:
    depth = 0
    for number in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[number].text, 0)
        if depth == 0:
            return number
    return len(tokens) - 1
