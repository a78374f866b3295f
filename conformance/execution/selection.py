"""`select`: selects checks by expressions on their names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.errors import PortingKitError

Predicate = Callable[[str], bool]


class SelectionError(PortingKitError):
    """A selection expression is malformed."""


def select(checks: Iterable[Check], expressions: Sequence[str]) -> list[Check]:
    """The checks that match any of the expressions, in their order. Raises `SelectionError`.

    An expression consists of words, ``and``, ``or``, ``not`` and parentheses. A word with ``*``, ``?`` or ``[`` is a
    pattern for the whole name. A word that is the name of a check selects that check. Any other word selects the
    checks whose names contain it, ignoring case.
    """
    all_checks = list(checks)
    names = frozenset(check.name for check in all_checks)
    wanted = [_Parser(expression, names).parse() for expression in expressions]
    return [check for check in all_checks if any(holds(check.name) for holds in wanted)]


class _Parser:
    """A recursive-descent parser: ``or`` binds weakest, ``not`` strongest."""

    def __init__(self, expression: str, names: frozenset[str]) -> None:
        self._expression, self._names = expression, names
        self._tokens = re.findall(r"[()]|[^\s()]+", expression)

    def parse(self) -> Predicate:
        found = self._either()
        if self._tokens:
            raise self._error(f"{self._tokens[0]!r} is unexpected")
        return found

    def _either(self) -> Predicate:
        found = self._both()
        while self._take("or"):
            left, right = found, self._both()
            found = _or(left, right)
        return found

    def _both(self) -> Predicate:
        found = self._unary()
        while self._take("and"):
            left, right = found, self._unary()
            found = _and(left, right)
        return found

    def _unary(self) -> Predicate:
        if self._take("not"):
            inner = self._unary()
            return lambda name: not inner(name)
        if self._take("("):
            inner = self._either()
            if not self._take(")"):
                raise self._error("a parenthesis is not closed")
            return inner
        if not self._tokens or self._tokens[0] in ("and", "or", ")"):
            raise self._error("a word is missing")
        return self._word(self._tokens.pop(0))

    def _word(self, word: str) -> Predicate:
        if re.search(r"[*?\[]", word):
            return lambda name: fnmatch.fnmatchcase(name, word)
        if word in self._names:
            return lambda name: name == word
        folded = word.lower()
        return lambda name: folded in name.lower()

    def _take(self, token: str) -> bool:
        if self._tokens and self._tokens[0] == token:
            self._tokens.pop(0)
            return True
        return False

    def _error(self, what: str) -> SelectionError:
        return SelectionError(
            f"{self._expression!r} is not a valid selection: {what}. Write words and patterns with and, or, "
            "not and parentheses, such as 'language/*/add-* and not fp64'"
        )


def _or(left: Predicate, right: Predicate) -> Predicate:
    return lambda name: left(name) or right(name)


def _and(left: Predicate, right: Predicate) -> Predicate:
    return lambda name: left(name) and right(name)
