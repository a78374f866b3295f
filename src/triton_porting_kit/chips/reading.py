"""Typed access to a TOML file, with errors that name the file, the line and the key."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.errors import DescriptionError


@dataclass
class Source:
    """A TOML file. Raises `DescriptionError` for what is not TOML."""

    file: str
    text: str

    def __post_init__(self) -> None:
        try:
            self.values: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"line (\d+)", str(error))
            raise DescriptionError(self.file, int(found[1]) if found else 0, str(error)) from None

    def line(self, path: tuple[str | int, ...]) -> int:
        """The line of a key or table: the innermost part of the path that is written out."""
        lines = self.text.splitlines()
        header, at, part = "", 0, 0
        for part, step in enumerate(path):
            if isinstance(step, int):
                continue
            inside = f"{header}.{step}" if header else step
            count = path[part + 1] if part + 1 < len(path) and isinstance(path[part + 1], int) else 0
            pattern = re.compile(rf"\s*\[+\s*{re.escape(inside)}\s*\]+")
            headers = [number for number, text in enumerate(lines) if pattern.match(text)]
            nested = re.compile(rf"\s*\[+\s*{re.escape(inside)}\.")
            if not headers and (
                within := [number for number, text in enumerate(lines) if nested.match(text)]
            ):
                header, at = inside, within[0] + 1
                continue
            if len(headers) <= int(count):
                break
            header, at = inside, headers[int(count)] + 1
        else:
            return at
        for number in range(at, len(lines)):
            if re.match(r"\s*\[", lines[number]):
                break
            if re.match(rf"\s*\"?{re.escape(str(path[part]))}\"?\s*=", lines[number]):
                return number + 1
        return at


@dataclass
class Table:
    """A table of a source."""

    source: Source
    values: dict[str, Any]
    path: tuple[str | int, ...] = ()

    def wrong(self, key: str, problem: str) -> DescriptionError:
        """The error of a key, to be raised."""
        name = ".".join(str(part) for part in (*self.path, key) if isinstance(part, str) and part)
        path = (*self.path, key) if key else self.path
        return DescriptionError(self.source.file, self.source.line(path), f"{name} {problem}")

    def only(self, known: Iterable[str]) -> None:
        """Raise for the first key that is not known, before a key that it was meant for is missed."""
        names = sorted(known)
        for key in self.values:
            if key not in names:
                close = difflib.get_close_matches(key, names, 1)
                meant = f", and probably means {close[0]}" if close else ""
                raise self.wrong(key, f"is unknown{meant}; known are {', '.join(names)}")

    def _get(self, key: str, kind: type | tuple[type, ...], what: str, default: Any) -> Any:
        value = self.values.get(key, default)
        if value is None:
            raise self.wrong(key, f"is missing; it has to be {what}")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, f"is {value!r}; it has to be {what}")
        return value

    def integer(self, key: str, least: int = 0, most: int = 1 << 48, default: int | None = None) -> int:
        """An integer in a range."""
        value: int = self._get(key, int, f"an integer from {least} to {most}", default)
        if not least <= value <= most:
            raise self.wrong(key, f"is {value}; it has to be an integer from {least} to {most}")
        return value

    def power(self, key: str, default: int | None = None) -> int:
        """A power of two up to 64 KiB."""
        value = self.integer(key, 1, 65536, default)
        if value & (value - 1):
            raise self.wrong(key, f"is {value}; it has to be a power of two")
        return value

    def number(self, key: str) -> float:
        """A number that is not negative."""
        value: float = self._get(key, (int, float), "a number", None)
        if not 0 <= value < 1 << 30:
            raise self.wrong(key, f"is {value}; it has to be a number from 0 to {1 << 30}")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """A boolean."""
        value: bool = self._get(key, bool, "true or false", default)
        return value

    def word(self, key: str, choices: tuple[str, ...] = ()) -> str:
        """A name without spaces, of `choices` if there are any."""
        value: str = self._get(key, str, f"one of {', '.join(choices)}" if choices else "a name", None)
        if choices and value not in choices:
            raise self.wrong(key, f"is {value!r}; it has to be one of {', '.join(choices)}")
        if not choices and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,31}", value):
            raise self.wrong(key, f"is {value!r}; it has to be a name of up to 32 letters, digits, _ and -")
        return value

    def sentence(self, key: str) -> str:
        """A text of one line."""
        value: str = self._get(key, str, "a text", None)
        if "\n" in value:
            raise self.wrong(key, "has several lines")
        return value

    def items(self, key: str, kind: type, what: str, count: int | None = None) -> list[Any]:
        """A list, not empty, of `count` values if that is given."""
        value: list[Any] = self._get(key, list, f"a list of {what}", None)
        wrong = [each for each in value if not isinstance(each, kind) or isinstance(each, bool)]
        if wrong or not value or (count is not None and len(value) != count):
            raise self.wrong(key, f"is {value!r}; it has to be a list of {count or 'one or more'} {what}")
        return value

    def table(self, key: str) -> Table | None:
        """The table of this name, if it is there."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, "has to be a table")
        return Table(self.source, value, (*self.path, key))

    def required(self, key: str) -> Table:
        """The table of this name."""
        found = self.table(key)
        if found is None:
            raise self.wrong(key, "is missing; it has to be a table")
        return found

    def named(self, key: str) -> Iterator[tuple[str, Table]]:
        """The tables ``[key.NAME]``, of which there is at least one."""
        outer = self.required(key)
        for name in outer.values:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,31}", name):
                raise outer.wrong(name, "is not a name of up to 32 letters, digits, _ and -")
            yield name, outer.required(name)

    def listed(self, key: str) -> Iterator[Table]:
        """The tables ``[[key]]``, of which there is at least one."""
        for number, each in enumerate(self.items(key, dict, "tables")):
            yield Table(self.source, each, (*self.path, key, number))
