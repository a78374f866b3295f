"""The files that are mutated: the sources of the CPU backend, in the installed kit."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from triton_porting_kit.conformance.mutants.cpp_sites import cpp_mutations
from triton_porting_kit.conformance.mutants.mutation import CPP, PYTHON, Mutation
from triton_porting_kit.conformance.mutants.python_sites import python_mutations

PACKAGE = "triton_porting_kit"
TREES = ("abi", "compiler", "launcher", "driver", "backends/cpu")
OTHERS = (
    "abi/elements.py", "abi/header.py", "abi/intervals.py",
    "compiler/cpp", "compiler/commands.py", "compiler/external.py", "compiler/gpu.py",
    "compiler/dialect/document.py", "compiler/dialect/interpreter",
    "launcher/build.py", "launcher/cache.py", "launcher/code_objects.py", "launcher/codegen", "launcher/generated.py",
    "launcher/python.py",
    "driver/hip", "driver/virtual",
)  # fmt: skip
"""Parts of these trees that do not belong to the CPU backend: emitters, launchers and devices of other backends and
their tools; the documentation generator and the interpreter of the structured form; and the table of types, which the
suite uses itself."""
NATIVE = ("abi/include", "driver/host/native", "driver/native", "launcher/native")
"""Folders of C++ sources."""
NOT_BUILT = ("launcher/native/launch_module.h",)
"""C++ that is not part of the host device's two modules: it is compiled for kernels of other devices."""


_NO_CHECKS = ("mutants", "command", "report", "faults")
"""Parts of the suite that do not affect the behaviour of checks."""


def is_chosen(path: str, trees: Sequence[str] = TREES) -> bool:
    """Whether a file is mutated, by its path relative to the package."""
    inside = any(path == tree or path.startswith(f"{tree}/") for tree in trees)
    return inside and not any(path == other or path.startswith(f"{other}/") for other in OTHERS)


def folder_of(tree: str) -> Path:
    """The folder in which a tree is installed."""
    found = importlib.import_module(f"{PACKAGE}.{tree.replace('/', '.')}").__file__
    assert found is not None
    return Path(found).resolve().parent  # `coverage` names files by resolved paths


def files(languages: Iterable[str] = (PYTHON, CPP)) -> dict[str, Path]:
    """All files that are mutated, by path relative to the package."""
    found: dict[str, Path] = {}
    for tree in TREES:
        folder = folder_of(tree)
        for path in sorted(folder.rglob("*")):
            name = f"{tree}/{path.relative_to(folder).as_posix()}"
            if language_of(name) in languages and is_chosen(name):
                found[name] = path
    return found


def language_of(path: str) -> str:
    """`PYTHON`, `CPP`, or the empty string."""
    if path.endswith(".py"):
        return PYTHON
    native = path.endswith((".cpp", ".h")) and path.startswith(tuple(f"{folder}/" for folder in NATIVE))
    return CPP if native and path not in NOT_BUILT else ""


def module_of(path: str) -> str:
    """The module name of a Python file."""
    parts = path.removesuffix(".py").split("/")
    return ".".join([PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def mutations(contents: Mapping[str, bytes]) -> list[Mutation]:
    """All mutations of some files, given by path relative to the package."""
    makers = {PYTHON: python_mutations, CPP: cpp_mutations}
    return [m for path, content in contents.items() for m in makers[language_of(path)](path, content)]


def sample(all_mutations: Iterable[Mutation], seed: int) -> list[Mutation]:
    """All mutations in the order of the sample. The first N are the sample of size N: larger samples extend smaller."""
    return sorted(all_mutations, key=lambda mutation: mutation.rank(seed))


def digest(contents: Mapping[str, bytes]) -> str:
    """A digest of the sources; a report belongs to one state of them."""
    found = hashlib.sha256()
    for path in sorted(contents):
        found.update(f"{path}\0{len(contents[path])}\0".encode() + contents[path])
    return found.hexdigest()[:16]


def suite() -> dict[str, bytes]:
    """The sources of the checks, by path: recorded lines are valid for this state of them."""
    folder = folder_of("conformance")
    parts = (path for path in folder.rglob("*.py") if path.relative_to(folder).parts[0] not in _NO_CHECKS)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in parts}
