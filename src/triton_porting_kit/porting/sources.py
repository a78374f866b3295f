"""Reading the sources of a generated repository without importing or building them.

A hook is a method of the package's class that derives from `Device`, or of one of its base classes. It calls functions
of the extension; the C++ functions have the same names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, TypeGuard

from triton_porting_kit import untrusted
from triton_porting_kit.driver import Device
from triton_porting_kit.driver.native_device import NativeDevice
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.porting.native_sources import NativeSources, Place

NATIVE = "_native"
"""The name of the extension module in the package."""
VIRTUAL_ABILITY = "virtual-npu"
"""The ability that tests of generated repositories require if they test the virtual NPU."""
_KIT_DEVICES = {
    "HostDevice": "triton_porting_kit.driver.host",
    "HipDevice": "triton_porting_kit.driver.hip",
    "OpenCLDevice": "triton_porting_kit.driver.opencl",
}
"""Complete devices of the kit, with their modules."""


@dataclass(frozen=True)
class Method:
    """A hook in Python: its place, and the names of the extension that it uses, directly or through other methods."""

    place: Place
    natives: tuple[str, ...]
    raises: bool
    """Whether it only raises an exception."""
    names_virtual: bool
    """Whether it calls the virtual NPU's runtime, or contains a string that mentions the virtual NPU."""
    kit: str = ""
    """The class of the kit that it is inherited from; empty if the repository defines it."""


@dataclass(frozen=True)
class Test:
    """A test function, and whether it tests the virtual NPU."""

    place: Place
    name: str
    about_virtual: bool


@dataclass(frozen=True)
class Repository:
    """The repository of a backend."""

    root: Path

    @cached_property
    def backend(self) -> str:
        """The backend's name in Triton. Raises `PortingKitError` if this is not the repository of a backend."""
        return self._entry[0]

    @property
    def package(self) -> Path:
        """The folder of the backend's package."""
        return self.root / "src" / self._entry[1].replace(".", "/")

    @cached_property
    def _entry(self) -> tuple[str, str]:
        file = self.root / "pyproject.toml"
        remedy = "run this in the repository of a backend, or name one with --repo"
        found: Any = untrusted.read_toml(file, untrusted.PROFILE, PortingKitError, remedy=remedy)
        for key in ("project", "entry-points", "triton.backends"):
            found = found.get(key, {}) if isinstance(found, dict) else {}
        entries = found if isinstance(found, dict) else {}
        if len(entries) != 1:
            raise PortingKitError(
                f"{file} registers {len(entries)} backends under triton.backends, and exactly one is expected: name "
                "the repository of a backend with --repo"
            )
        ((name, package),) = entries.items()
        if not re.fullmatch(r"\w+(\.\w+)*", str(package)):
            raise PortingKitError(
                f"{file} registers {package!r:.80} under triton.backends, which is not the name of a package"
            )
        return name, package

    # --- Python ------------------------------------------------------------------------------------------

    @cached_property
    def modules(self) -> dict[Path, ast.Module]:
        """The modules of the package. Raises `PortingKitError` for one that Python cannot parse."""
        found = {}
        for path in sorted(self.package.rglob("*.py")):
            try:
                found[path] = ast.parse(untrusted.read_text(path, untrusted.SOURCE, PortingKitError))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                reason = str(error) or type(error).__name__
                raise PortingKitError(f"{self._name(path)} cannot be read: {reason}") from error
        if not found:
            raise PortingKitError(f"there are no modules in {self.package}")
        return found

    @cached_property
    def classes(self) -> dict[str, tuple[Path, ast.ClassDef]]:
        """The classes of the package's modules."""
        return {
            node.name: (path, node)
            for path, module in self.modules.items()
            for node in module.body
            if isinstance(node, ast.ClassDef)
        }

    @cached_property
    def device(self) -> str:
        """The name of the class with the hooks."""
        devices = [
            name
            for name in self.classes
            if self._foreign_bases(name) & {"Device", "NativeDevice", *_KIT_DEVICES}
        ]
        bases = {_last_name(base) for name in devices for base in self.classes[name][1].bases}
        for name in devices:
            if name not in bases:
                return name
        raise PortingKitError(f"no class in {self.package} derives from the kit's Device")

    @cached_property
    def driver(self) -> str | None:
        """The name of the class that derives from `TritonDriver`."""
        return next(
            (name for name in self.classes if self._foreign_bases(name) & {"TritonDriver", "OpenCLDriver"}),
            None,
        )

    def place_of_class(self, name: str) -> Place:
        """The place of a class."""
        path, node = self.classes[name]
        return Place(self._name(path), node.lineno)

    def method(self, name: str, cls: str | None = None) -> Method | None:
        """A method of a class, by default of the device's class."""
        cls = cls or self.device
        chain = self._own_bases(cls)
        methods: dict[str, tuple[Path, ast.FunctionDef]] = {}
        for path, body in ((self.classes[each][0], self.classes[each][1].body) for each in reversed(chain)):
            methods |= {each.name: (path, each) for each in body if isinstance(each, ast.FunctionDef)}
        if name not in methods:
            return self._inherited(name, cls)
        extension = {NATIVE} | {
            target.attr
            for _, method in methods.values()
            for node in ast.walk(method)
            if isinstance(node, ast.Assign) and _root(node.value) == NATIVE
            for target in node.targets
            if isinstance(target, ast.Attribute)
        }
        natives: dict[str, None] = {}
        names_virtual = False
        waiting, seen = [name], set[str]()
        while waiting:
            current = waiting.pop()
            if current in seen or current not in methods:
                continue
            seen.add(current)
            for node in _without_docstring(methods[current][1]):
                names_virtual |= _names_virtual(node)
                if isinstance(node, ast.Attribute):
                    if _last_name(node.value) in extension:
                        natives[node.attr] = None
                    elif isinstance(node.value, ast.Name) and node.value.id == "self":
                        waiting.append(node.attr)
        path, found = methods[name]
        statements = [each for each in found.body if not _is_text(each)]
        raises = len(statements) == 1 and isinstance(statements[0], ast.Raise)
        return Method(Place(self._name(path), found.lineno), tuple(natives), raises, names_virtual)

    def _inherited(self, name: str, cls: str) -> Method | None:
        """A hook that is inherited from a class of the kit."""
        for kit in sorted(self._foreign_bases(cls)):
            if kit == "NativeDevice" and name in vars(NativeDevice):
                natives = (name, "synchronize_all") if name == "synchronize" else (name,)
                return Method(self.place_of_class(cls), natives, False, False)
            if kit in _KIT_DEVICES and _has_hook(kit, name):
                return Method(self.place_of_class(cls), (), False, False, kit)
        return None

    def _own_bases(self, cls: str) -> list[str]:
        """A class and its base classes in the package, itself first."""
        found: list[str] = []
        waiting = [cls]
        while waiting:
            name = waiting.pop(0)
            if name in self.classes and name not in found:
                found.append(name)
                waiting += [_last_name(base) for base in self.classes[name][1].bases]
        return found

    def _foreign_bases(self, cls: str) -> set[str]:
        """The base classes of a class that are not in the package."""
        own = self._own_bases(cls)
        return {_last_name(base) for name in own for base in self.classes[name][1].bases} - {*self.classes}

    def use(self, name: str) -> Place | None:
        """The first use of a name in the package, except imports."""
        return self._first(lambda node: isinstance(node, ast.Name) and node.id == name)

    def attribute(self, owner: str, name: str) -> Place | None:
        """The first use of an attribute ``owner.name``."""
        return self._first(
            lambda node: (
                isinstance(node, ast.Attribute) and node.attr == name and _last_name(node.value) == owner
            )
        )

    def call(self, function: str, lacking: str = "", position: int = 99) -> Place | None:
        """The first call of a function; with `lacking`, the first that does not pass this argument."""

        def is_it(node: ast.AST) -> bool:
            return (
                isinstance(node, ast.Call)
                and _last_name(node.func) == function
                and not (
                    lacking
                    and (len(node.args) > position or lacking in {keyword.arg for keyword in node.keywords})
                )
            )

        return self._first(is_it)

    def subclass(self, suffix: str) -> tuple[Place, str] | None:
        """The first class with a base whose name has this suffix, and the name of the base."""
        for name, (_, node) in self.classes.items():
            for base in map(_last_name, node.bases):
                if base.endswith(suffix):
                    return self.place_of_class(name), base
        return None

    def constant(self, name: str) -> tuple[Place, str] | None:
        """The first string that is assigned to a variable of this name."""
        for path, module in self.modules.items():
            for node in ast.walk(module):
                if (
                    isinstance(node, ast.Assign)
                    and any(_last_name(target) == name for target in node.targets)
                    and isinstance(node.value, ast.Constant)
                    and isinstance(node.value.value, str)
                ):
                    return Place(self._name(path), node.lineno), node.value.value
        return None

    def flag(self, name: str) -> Place | None:
        """The first place where True is assigned to a variable of this name."""

        def is_it(node: ast.AST) -> bool:
            return (
                isinstance(node, ast.Assign)
                and any(_last_name(target) == name for target in node.targets)
                and isinstance(node.value, ast.Constant)
                and node.value.value is True
            )

        return self._first(is_it)

    def key(self, table: str, keys: tuple[str, ...]) -> Place | None:
        """The first of some keys in a dictionary that is assigned to a variable, or that is set in it later."""

        def is_it(node: ast.AST) -> bool:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                return False
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = [each.slice for each in targets if _is_item_of(each, table)]
            if isinstance(node.value, ast.Dict) and any(_last_name(each) == table for each in targets):
                found += [each for each in node.value.keys if each]
            return any(isinstance(each, ast.Constant) and each.value in keys for each in found)

        return self._first(is_it)

    def _first(self, is_it: Callable[[ast.AST], bool]) -> Place | None:
        for path, module in self.modules.items():
            lines = [getattr(node, "lineno", 0) for node in ast.walk(module) if is_it(node)]
            if lines:
                return Place(self._name(path), min(lines))
        return None

    # --- tests -------------------------------------------------------------------------------------------

    @cached_property
    def tests(self) -> list[Test]:
        """The test functions in ``tests/``. A file that Python cannot parse has none."""
        found = []
        for path in sorted((self.root / "tests").rglob("*.py")):
            try:
                module = ast.parse(untrusted.read_text(path, untrusted.SOURCE, PortingKitError))
            except (PortingKitError, SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
            marked = {node.name for node in functions if any(map(_asks_for_virtual, ast.walk(node)))}
            whole = any(
                _asks_for_virtual(node)
                for statement in module.body
                if isinstance(statement, ast.Assign) and _last_name(statement.targets[0]) == "pytestmark"
                for node in ast.walk(statement)
            )
            for node in functions:
                if node.name.startswith("test"):
                    uses = {node.name, *(argument.arg for argument in node.args.args)}
                    place = Place(self._name(path), node.lineno)
                    found.append(Test(place, node.name, whole or bool(uses & marked)))
        return found

    @cached_property
    def native(self) -> NativeSources:
        """The C++ sources of the extension."""
        return NativeSources(self.root)

    # --- anything ----------------------------------------------------------------------------------------

    def line(self, file: str, pattern: str) -> Place | None:
        """The first line of a file that matches a regular expression."""
        try:
            lines = untrusted.read_text(self.root / file, untrusted.SOURCE, PortingKitError).splitlines()
        except PortingKitError:
            return None
        numbers = (number for number, line in enumerate(lines, 1) if re.search(pattern, line))
        return next((Place(file, number) for number in numbers), None)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _without_docstring(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """All nodes of a function's statements, without docstrings."""
    for statement in function.body:
        if not _is_text(statement):
            yield from ast.walk(statement)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _has_hook(kit: str, name: str) -> bool:
    """Whether a device of the kit has a hook, beyond the one of `Device`, which raises."""
    device = getattr(import_module(_KIT_DEVICES[kit]), kit)
    return getattr(device, name, None) is not getattr(Device, name, None)


def _is_item_of(node: ast.expr, table: str) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and _last_name(node.value) == table


def _names_virtual(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and "virtual npu" in node.value.lower()
    return isinstance(node, ast.Attribute | ast.Name) and _last_name(node).startswith("vnpu_")


def _asks_for_virtual(node: ast.AST) -> bool:
    """Whether a test is about the virtual NPU: it requires it, or sets one of its environment variables."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (node.value == VIRTUAL_ABILITY or node.value.startswith("VNPU_"))
    )


def _root(node: ast.expr) -> str:
    """The first name of an expression of attributes and calls."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
