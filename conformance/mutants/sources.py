"""Which files are mutated: those that the CPU backend is made of, wherever the kit is installed."""

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
"""Parts of these trees that are not of the CPU backend: emitters, launchers and devices of other backends, and what
they are made with; what writes docs and interprets the structured form; and the table of types, which the suite has
its own from."""
NATIVE = ("abi/include", "driver/host/native", "driver/native", "launcher/native")
"""Folders of C++ sources."""
NOT_BUILT = ("launcher/native/launch_module.h",)
"""C++ that is no part of the host device's two modules: it is built for kernels of other devices."""


_NO_CHECKS = ("mutants", "command", "report", "faults")
"""Parts of the suite that say nothing about what a check does."""


def is_chosen(path: str, trees: Sequence[str] = TREES) -> bool:
    """Whether a file, by its path below the package, is mutated."""
    inside = any(path == tree or path.startswith(f"{tree}/") for tree in trees)
    return inside and not any(path == other or path.startswith(f"{other}/") for other in OTHERS)


def folder_of(tree: str) -> Path:
    """Where a tree is installed."""
    found = importlib.import_module(f"{PACKAGE}.{tree.replace('/', '.')}").__file__
    assert found is not None
    return Path(found).resolve().parent  # as coverage names files


def files(languages: Iterable[str] = (PYTHON, CPP)) -> dict[str, Path]:
    """All files that are mutated, by their paths below the package."""
    found: dict[str, Path] = {}
    for tree in TREES:
        folder = folder_of(tree)
        for path in sorted(folder.rglob("*")):
            name = f"{tree}/{path.relative_to(folder).as_posix()}"
            if language_of(name) in languages and is_chosen(name):
                found[name] = path
    return found


def language_of(path: str) -> str:
    """`PYTHON`, `CPP`, or nothing."""
    if path.endswith(".py"):
        return PYTHON
    native = path.endswith((".cpp", ".h")) and path.startswith(tuple(f"{folder}/" for folder in NATIVE))
    return CPP if native and path not in NOT_BUILT else ""


def module_of(path: str) -> str:
    """The name of the module of a Python file."""
    parts = path.removesuffix(".py").split("/")
    return ".".join([PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def mutations(contents: Mapping[str, bytes]) -> list[Mutation]:
    """All mutations of some files, given by their paths below the package."""
    makers = {PYTHON: python_mutations, CPP: cpp_mutations}
    return [m for path, content in contents.items() for m in makers[language_of(path)](path, content)]


def sample(all_mutations: Iterable[Mutation], seed: int) -> list[Mutation]:
    """All of them in the order of the sample: the first N are the sample of N, so that more is the same and more."""
    return sorted(all_mutations, key=lambda mutation: mutation.rank(seed))


def digest(contents: Mapping[str, bytes]) -> str:
    """Of the state of the sources: a report is about one."""
    found = hashlib.sha256()
    for path in sorted(contents):
        found.update(f"{path}\0{len(contents[path])}\0".encode() + contents[path])
    return found.hexdigest()[:16]


def suite() -> dict[str, bytes]:
    """The files that checks are made of, by path: what is known of their lines is about these."""
    folder = folder_of("conformance")
    parts = (path for path in folder.rglob("*.py") if path.relative_to(folder).parts[0] not in _NO_CHECKS)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in parts}
