"""Reading the sources of a generated repository, without importing or building them.

A hook is a method of the one class in the package that derives from `Device`. It calls functions of the extension,
whose C++ has functions of the same names.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from triton_porting_kit.errors import PortingKitError

NATIVE = "_native"
"""Name of the extension module, and of what a device calls it by."""


@dataclass(frozen=True)
class Place:
    """A line of a file, which is named from the top of the repository."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Function:
    """A definition: where it is, and its body with comments and texts left out."""

    place: Place
    body: str


@dataclass(frozen=True)
class Method:
    """A hook in Python: where it is, and the names that it uses of the extension, itself or through other methods."""

    place: Place
    natives: tuple[str, ...]
    raises: bool
    """Whether it does nothing but raise."""


@dataclass(frozen=True)
class Repository:
    """The repository of a backend."""

    root: Path

    @cached_property
    def backend(self) -> str:
        """The name under which Triton has it. Raises `PortingKitError` where this is no backend's repository."""
        return self._entry[0]

    @property
    def package(self) -> Path:
        """The folder of the backend's package."""
        return self.root / "src" / self._entry[1].replace(".", "/")

    @cached_property
    def _entry(self) -> tuple[str, str]:
        file = self.root / "pyproject.toml"
        try:
            project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
        except OSError as error:
            raise PortingKitError(
                f"{file} cannot be read ({error.strerror}): run this in the repository of a backend, or name one "
                "with --repo"
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PortingKitError(f"{file} is not TOML: {error}") from error
        entries = project.get("entry-points", {}).get("triton.backends", {})
        if len(entries) != 1:
            raise PortingKitError(
                f"{file} registers {len(entries)} backends under triton.backends, and one is looked at: name the "
                "repository of one with --repo"
            )
        ((name, package),) = entries.items()
        return name, package

    # --- Python ------------------------------------------------------------------------------------------

    @cached_property
    def modules(self) -> dict[Path, ast.Module]:
        """Every module of the package. Raises `PortingKitError` for one that Python cannot read."""
        found = {}
        for path in sorted(self.package.rglob("*.py")):
            try:
                found[path] = ast.parse(path.read_text(encoding="utf-8"))
            except (OSError, SyntaxError, ValueError) as error:
                raise PortingKitError(f"{self._name(path)} cannot be read: {error}") from error
        if not found:
            raise PortingKitError(f"there are no modules in {self.package}")
        return found

    @cached_property
    def device(self) -> tuple[Path, ast.ClassDef]:
        """The class with the hooks, and its file."""
        for path, module in self.modules.items():
            for node in module.body:
                if isinstance(node, ast.ClassDef) and any(
                    _last_name(base) == "Device" for base in node.bases
                ):
                    return path, node
        raise PortingKitError(f"no class in {self.package} derives from the kit's Device")

    def method(self, name: str) -> Method | None:
        """A method of the device."""
        path, cls = self.device
        methods = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
        if name not in methods:
            return None
        natives: dict[str, None] = {}
        waiting, seen = [name], set[str]()
        while waiting:
            current = waiting.pop()
            if current in seen or current not in methods:
                continue
            seen.add(current)
            for node in ast.walk(methods[current]):
                if isinstance(node, ast.Attribute):
                    if _last_name(node.value) == NATIVE:
                        natives[node.attr] = None
                    elif isinstance(node.value, ast.Name) and node.value.id == "self":
                        waiting.append(node.attr)
        body = methods[name].body
        return Method(
            Place(self._name(path), methods[name].lineno), tuple(natives), isinstance(body[-1], ast.Raise)
        )

    def use(self, name: str) -> Place | None:
        """The first use of a name in the package, imports aside."""
        for path, module in self.modules.items():
            lines = [
                node.lineno for node in ast.walk(module) if isinstance(node, ast.Name) and node.id == name
            ]
            if lines:
                return Place(self._name(path), min(lines))
        return None

    def subclass(self, suffix: str) -> Place | None:
        """The first class whose base's name ends so."""
        for path, module in self.modules.items():
            for node in module.body:
                if isinstance(node, ast.ClassDef) and any(
                    _last_name(base).endswith(suffix) for base in node.bases
                ):
                    return Place(self._name(path), node.lineno)
        return None

    # --- C++ ---------------------------------------------------------------------------------------------

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """Every function that is defined in ``native/``, by its name without the class."""
        found: dict[str, list[Function]] = {}
        for path in self._native_files:
            text = _without(path.read_text(encoding="utf-8", errors="replace"), texts=True)
            for name, start, body in definitions(text):
                place = Place(self._name(path), text.count("\n", 0, start) + 1)
                found.setdefault(name, []).append(Function(place, body))
        return found

    def bound(self, name: str) -> Place | None:
        """Where C++ binds something under a name of Python's."""
        for path in self._native_files:
            text = _without(path.read_text(encoding="utf-8", errors="replace"), texts=False)
            if match := re.search(rf'\b(?:def\w*|bind)\s*\([^"()]*"{re.escape(name)}"', text):
                return Place(self._name(path), text.count("\n", 0, match.end()) + 1)
        return None

    @property
    def _native_files(self) -> list[Path]:
        kinds = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp")
        return sorted(path for path in (self.root / "native").rglob("*") if path.suffix in kinds)

    # --- anything ----------------------------------------------------------------------------------------

    def line(self, file: str, pattern: str) -> Place | None:
        """The first line of a file in which a regular expression is found."""
        try:
            lines = (self.root / file).read_text(encoding="utf-8").splitlines()
        except OSError:
            return None
        numbers = (number for number, line in enumerate(lines, 1) if re.search(pattern, line))
        return next((Place(file, number) for number in numbers), None)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


_WORDS = frozenset(
    {"if", "for", "while", "switch", "catch", "return", "sizeof", "alignof", "decltype", "static_assert"}
)


def definitions(text: str) -> Iterator[tuple[str, int, str]]:
    """Functions that are defined in C++ without comments and texts: (name, where it begins, body)."""
    for match in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", text):
        if match[1] in _WORDS:
            continue
        after = _closed(text, match.end() - 1, "()")
        follows = re.compile(r"\s*(const|noexcept|override|final|->\s*[\w:<>*& ]+|\s)*\{").match(text, after)
        if follows:
            end = _closed(text, follows.end() - 1, "{}")
            yield match[1], match.start(1), text[follows.end() : end - 1]


def _closed(text: str, start: int, pair: str) -> int:
    """Behind what closes the parenthesis or brace at `start`."""
    depth = 0
    for match in re.compile(rf"[{re.escape(pair)}]").finditer(text, start):
        depth += 1 if match[0] == pair[0] else -1
        if depth == 0:
            return match.end()
    return len(text)


_COMMENT_OR_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)


def _without(text: str, *, texts: bool) -> str:
    """C++ with comments, and texts if asked, as blanks: places stay what they are."""

    def blank(match: re.Match[str]) -> str:
        if match[0][0] != "/" and not texts:
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return _COMMENT_OR_TEXT.sub(blank, text)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
