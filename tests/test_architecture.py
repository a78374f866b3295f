"""The rules of the architecture: which package may import which, and what importing Triton costs."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import ROOT, SRC, files, modules, tree_of

from triton_porting_kit.public import is_public

pytestmark = pytest.mark.xdist_group("architecture")  # the syntax trees are shared

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
READERS = ("triton_porting_kit.binaries.code_object", "triton_porting_kit.toolchain.amdgpu_disassembler")
"""Modules of the toolchain that read binaries, which the suite judges."""
TEST_BACKEND = (
    "triton_porting_kit.conformance.faults.backend",
    "triton_porting_kit.conformance.faults.gpu_backend",
)
"""Backends of the suite's own, for planted faults."""
BINDINGS = ("mlir", "numba_cuda_mlir", "llvmlite")


def imports(name: str, path: Path) -> Iterator[tuple[str, str]]:
    """Every import of a module, wherever it stands: (module, name from it or nothing)."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, *([base] if base else [])])
            yield from ((base, alias.name) for alias in node.names)


@functools.cache
def all_imports() -> list[tuple[str, str, str]]:
    """(module, imported module, name from it or nothing)."""
    return [(name, target, item) for name, path in modules() for target, item in imports(name, path)]


def package_of(name: str) -> str:
    """The package that a module of the kit is in; empty for others."""
    match = re.match(r"triton_porting_kit\.(\w+)", name)
    return match[1] if match else ""


def test_the_walk_sees_the_kit() -> None:
    packages = {package_of(name) for name, _ in modules()}
    assert {"compiler", "launcher", "driver", "backends", "kernels", "toolchain", "cli"} <= packages
    assert (
        "triton_porting_kit.compiler.ttir",
        "triton_porting_kit.compiler.ttir.passes",
        "optimize",
    ) in all_imports()


def test_the_import_path_is_the_path_below_src() -> None:
    """So that editors, mypy and other readers of paths find every package in a plain checkout."""
    assert PROJECT["tool"]["scikit-build"]["wheel"]["packages"] == [f"src/{path.name}" for path in _shipped()]
    kit = SRC / "triton_porting_kit"
    links = {path.name: path.readlink().as_posix() for path in kit.iterdir() if path.is_symlink()}
    assert links == {name: f"../../{name}" for name in links}
    top = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()}
    assert top - {"tests", "benchmarks"} <= links.keys(), "a package at the top has no link"


def _shipped() -> list[Path]:
    return sorted(path for path in SRC.iterdir() if (path / "__init__.py").is_file())


def test_parts_do_not_import_each_other() -> None:
    parts = {"compiler", "launcher", "driver"}
    allowed = {
        "abi",
        "binaries",
        "chips",
        "errors",
        "on_demand",
        "toolchain",
        "trust",
        "untrusted",
        "",
        "__version__",
    }
    for name, target, item in all_imports():
        if package_of(name) in parts and target.startswith("triton_porting_kit"):
            wanted = package_of(f"{target}.{item}" if target == "triton_porting_kit" else target)
            assert wanted in {package_of(name), *allowed}, f"{name} imports {item} from {target}"


def test_the_picture_shows_the_imports() -> None:
    """Each package is a box. What it imports can be reached by arrows, and no arrow is there for nothing."""
    packages = {path.parent.name for path in (SRC / "triton_porting_kit").glob("*/__init__.py")}
    imported: dict[str, set[str]] = {package: set() for package in packages}
    for name, target, item in all_imports():
        wanted = package_of(f"{target}.{item}" if target == "triton_porting_kit" else target)
        if (own := package_of(name)) in packages and wanted in packages - {own}:
            imported[own].add(wanted)

    picture = (ROOT / "docs" / "architecture.svg").read_text()
    assert {*re.findall(r'data-package="(\w+)"', picture)} == packages
    arrows: dict[str, set[str]] = {package: set() for package in packages}
    for source, target in re.findall(r'data-from="(\w+)" data-to="(\w+)"', picture):
        arrows[source].add(target)
    for package in packages:
        assert imported[package] <= _reached(arrows, package), (
            f"{package} imports more than the picture shows"
        )
        for target in arrows[package]:
            assert target in imported[package], f"{package} does not import {target}"
            others = {**arrows, package: arrows[package] - {target}}
            assert target not in _reached(others, package), f"{package} to {target} follows from others"
        assert package not in _reached(arrows, package), f"{package} imports itself by way of others"


def _reached(arrows: dict[str, set[str]], package: str) -> set[str]:
    found: set[str] = set()
    left = [*arrows[package]]
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left += arrows[name]
    return found


def test_names_on_demand_are_those_that_type_checkers_see() -> None:
    packages = {"compiler", "launcher"}
    for package in packages:
        tree = ast.parse((SRC / "triton_porting_kit" / package / "__init__.py").read_text())
        (block,) = (node for node in tree.body if isinstance(node, ast.If))
        seen = {}
        for node in block.body:
            assert isinstance(node, ast.ImportFrom)
            module = (node.module or "").removeprefix("triton_porting_kit.")
            for alias in node.names:
                renamed = f":{alias.name}" if alias.asname else ""
                seen[alias.asname or alias.name] = "" if module == package else module + renamed
        (table,) = (node for node in ast.walk(tree) if isinstance(node, ast.Dict))
        assert ast.literal_eval(table) == seen
        loaded = importlib.import_module(f"triton_porting_kit.{package}")
        assert sorted(seen) == sorted(loaded.__all__)
        assert all(hasattr(loaded, name) for name in seen)


CYCLES = {
    frozenset(
        {f"compiler.loops.tiles.{name}" for name in ("access", "evaluation", "runs", "tensors")}
    ): "an evaluation evaluates tensors and their runs, and these evaluate their operands in it",
    frozenset(
        {"compiler.loops.lowering", "compiler.loops.state"}
    ): "the state holds handlers, which take the lowering",
    frozenset(
        {
            f"compiler.dialect.interpreter.{name}"
            for name in ("accesses", "chips", "machine", "table", "tiles")
        }
    ): "a running program looks up handlers, which take the program",
}
"""Modules that import each other, if only for type annotations, and why."""


def test_modules_import_each_other_only_where_listed() -> None:
    """Imports for type annotations count. Imports of the package itself do not: every import runs it first."""
    names = {name for name, _ in modules()} - {"triton_porting_kit"}
    imported: dict[str, set[str]] = {name: set() for name in names}
    for name, target, item in all_imports():
        full = f"{target}.{item}"
        if name in names and not _is_extension(full):
            imported[name] |= {full if full in names else target} & names
    reached = {name: _reached(imported, name) for name in names}
    found = {
        frozenset(
            other.removeprefix("triton_porting_kit.") for other in reached[name] if name in reached[other]
        )
        for name in names
        if name in reached[name]
    }
    assert found == CYCLES.keys()


def _is_extension(name: str) -> bool:
    return (SRC / Path(*name.split("."))).with_suffix(".pyi").is_file()


def test_the_abi_is_below_everything() -> None:
    """What the parts agree on is plain data: it needs none of them, and no library."""
    for name, target, item in all_imports():
        if package_of(name) == "abi":
            wanted = package_of(f"{target}.{item}" if target == "triton_porting_kit" else target)
            plain = target.partition(".")[0] in sys.stdlib_module_names
            assert plain or wanted in ("abi", "errors", "__version__"), f"{name} imports {item} from {target}"


def test_descriptions_of_chips_need_only_the_errors() -> None:
    for name, target, item in all_imports():
        if package_of(name) == "chips":
            wanted = package_of(f"{target}.{item}" if target == "triton_porting_kit" else target)
            plain = target.partition(".")[0] in sys.stdlib_module_names
            assert plain or wanted in ("chips", "errors"), f"{name} imports {item} from {target}"


def test_readers_of_binaries_need_nothing_of_the_kit() -> None:
    for name, target, item in all_imports():
        if package_of(name) == "binaries" and target.startswith("triton_porting_kit"):
            wanted = package_of(f"{target}.{item}" if target == "triton_porting_kit" else target)
            assert wanted in ("binaries", "errors", "untrusted"), f"{name} imports {item} from {target}"


def test_backends_use_public_names_only() -> None:
    for name, target, item in all_imports():
        parts = target.split(".")
        if parts[0] != "triton_porting_kit" or package_of(target) in ("backends", ""):
            continue
        if package_of(name) != "backends" and not (
            name.startswith(TEST_BACKEND) and package_of(target) != "conformance"
        ):
            continue
        public = is_public(target, item)
        assert public, f"{name} imports {item or 'the module'} from {target}, which is not public"


def test_the_suite_needs_little() -> None:
    """The suite knows a backend through Triton and the public driver interface; only reports need libraries."""
    reporting = ("fastjsonschema", "jinja2", "junitparser", "rich", "typer")
    for name, target, item in all_imports():
        if package_of(name) != "conformance" or name.startswith(TEST_BACKEND):
            continue
        top = target.partition(".")[0]
        allowed = ["numpy", "triton", "pytest", "xdist", "torch", "triton_porting_kit"]
        if name.startswith(
            ("triton_porting_kit.conformance.report", "triton_porting_kit.conformance.command")
        ):
            allowed += reporting
        if name.startswith("triton_porting_kit.conformance.mutants"):
            allowed += ["coverage"]
        assert top in (*sys.stdlib_module_names, *allowed), f"{name} imports {target}"
        if top == "triton_porting_kit":
            wanted = package_of(f"{target}.{item}" if target == "triton_porting_kit" else target)
            if wanted in ("driver", "launcher"):  # what it compares with is what vendors see
                public = importlib.import_module(f"triton_porting_kit.{wanted}").__all__
                assert item in public, f"{name} imports {item} from {target}"
            elif target in READERS:
                pass  # binaries are known by their content
            elif name.startswith("triton_porting_kit.conformance.judge") and wanted == "replay":
                pass  # what a stranger's kernels were launched with is recorded
            elif name.startswith("triton_porting_kit.conformance.distributed") and (
                wanted in ("distributed", "language")
            ):
                pass  # ranks are judged through the group and the functions that users call
            else:
                assert wanted in ("", "abi", "conformance", "errors", "kernels", "trust", "untrusted") or (
                    target == "triton_porting_kit.toolchain"
                    and (item == "compat" or f"{target}.{item}" in READERS)
                ), f"{name} imports {item} from {target}"


def test_only_compat_decides_by_release() -> None:
    """Elsewhere stand the names of facts: what a new release changes is then in one place."""
    for name, path in modules():
        if name.startswith("triton_porting_kit.toolchain.compat"):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Compare):
                releases = re.findall(
                    r"(?<!version_info >= )\(3, \d+\)|triton\.__version__ [<>]", ast.unparse(node)
                )
                assert not releases, f"{path}:{node.lineno}"


def test_only_the_toolchain_imports_bindings() -> None:
    for name, target, item in all_imports():
        if package_of(name) != "toolchain":
            assert target.partition(".")[0] not in BINDINGS, f"{name} imports {item} from {target}"
            assert not target.startswith("triton._C"), f"{name} imports {item} from {target}"


def test_files_stay_short() -> None:
    kinds = (".py", ".cpp", ".h", ".pyi", ".jinja")
    beside = (path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*"))
    lengths = {
        path: len(path.read_text().splitlines()) for path in (*files(), *beside) if path.suffix in kinds
    }
    assert {str(path): length for path, length in lengths.items() if length > 600} == {}


def test_names_of_test_files_are_unique() -> None:
    """pytest imports them by their names alone, and then one run cannot collect two of the same name."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


TABLES = {
    "triton_porting_kit.compiler.dialect.operations": "the operations, a class each",
    "triton_porting_kit.conformance.public.collections.liger": "the functions of a package, an entry each",
}
"""Modules of more than 400 lines, and what they are."""
RECORDS = {
    "Manifest": "a file of a recorded launch",
    "Request": "the options of `tpk conform`",
    "Verdict": "a line of the file of mutants",
    "Kernel": "the metadata of a kernel in a code object",
    "DeviceProperties": "what vendors say of a device",
    "DeviceInfo": "what an OpenCL driver says of a device",
    "TorchArrays": "the functions of torch that a judgement calls",
    "Lowering": "the state of a lowering and the parts that own the rest",
    "Collection": "a line of the table of published packages",
}
"""Classes of more than 15 fields, and what they are."""


def test_modules_functions_and_classes_stay_small() -> None:
    """A signature and a docstring do not count: those of commands are tables of options."""
    long: dict[str, int] = {}
    for name, path in modules():
        if (length := len(path.read_text().splitlines())) > 400 and name not in TABLES:
            long[name] = length
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and node.body[1:] else node.body
                if (length := (node.end_lineno or 0) - body[0].lineno + 1) > 60:
                    long[f"{name}.{node.name}"] = length
            elif isinstance(node, ast.ClassDef) and node.name not in RECORDS and len(_fields(node)) > 15:
                long[f"{name}.{node.name}"] = len(_fields(node))
    assert long == {}


def _fields(node: ast.ClassDef) -> set[str]:
    """Fields that a class declares, and attributes that its ``__init__`` sets."""
    found = {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            found |= {
                each.attr
                for each in ast.walk(method)
                if isinstance(each, ast.Attribute)
                and isinstance(each.ctx, ast.Store)
                and ast.unparse(each.value) == "self"
            }
    return found


def loaded_after(statement: str) -> list[str]:
    """The top-level modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded: list[str] = json.loads(done.stdout)
    return loaded


def test_importing_triton_loads_no_bindings() -> None:
    loaded = loaded_after("import triton")
    assert "triton_porting_kit" in loaded
    assert not set(loaded) & {*BINDINGS, "torch"}


@pytest.mark.parametrize("missing", [BINDINGS, ("torch",)])
def test_triton_imports_where_bindings_are_missing(missing: tuple[str, ...]) -> None:
    block = f"import sys; sys.modules.update(dict.fromkeys({missing!r}))"
    loaded_after(f"{block}\nimport triton\nassert 'cpu' in triton.backends.backends")


def test_every_dependency_is_explained() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    for requirement in PROJECT["project"]["dependencies"]:
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert name is not None
        assert f"`{name[0]}`" in text, f"docs/dependencies.md does not say why {name[0]} is needed"
