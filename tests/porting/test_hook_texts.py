"""The texts on hooks in generated repositories agree with the kit's table of them."""

from __future__ import annotations

import ast
import fnmatch
import inspect
import re
from pathlib import Path

import pytest

from triton_porting_kit.conformance import mandatory
from triton_porting_kit.conformance.levels import LEVELS
from triton_porting_kit.driver import HOOKS, Hook
from triton_porting_kit.porting.names import names_of
from triton_porting_kit.porting.new import Shape, make
from triton_porting_kit.porting.parts import parts_of
from triton_porting_kit.porting.sources import Repository
from triton_porting_kit.porting.status import REPORTS
from triton_porting_kit.public import is_public

#: The shapes whose repository has a device of its own; that of `opencl` is the kit's.
OWN_DEVICES = [shape for shape in Shape if shape is not Shape.OPENCL]


@pytest.fixture(scope="module", params=Shape)
def shape(request: pytest.FixtureRequest) -> Shape:
    return Shape(request.param)


@pytest.fixture(scope="module")
def root(shape: Shape, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into, names = tmp_path_factory.mktemp("made"), names_of("chip-7", {})
    return make(names, vendor="Chips", chip="Seven", into=into, own_repository=False, shape=shape).path


@pytest.fixture(scope="module")
def porting(root: Path) -> str:
    return (root / "docs" / "PORTING.md").read_text()


def row(hook: Hook) -> str:
    """The hook's line in the tables of the page."""
    return f"| `{hook.name}` | {hook.contract} | {', '.join(f'`{check}`' for check in hook.checks)} |"


@pytest.mark.parametrize("shape", OWN_DEVICES, indirect=True)
@pytest.mark.parametrize(
    "hook", [hook for hook in HOOKS.values() if hook.step != "groups"], ids=lambda hook: hook.name
)
def test_comments_say_contract_and_checks(root: Path, hook: Hook) -> None:
    tree = ast.parse((root / "src" / "triton_chip_7" / "device.py").read_text())
    methods = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    text = inspect.cleandoc(ast.get_docstring(methods[hook.name]) or "")
    assert text.splitlines()[0] == hook.contract
    checks = text[text.index("Checks: ") :].replace("\n", " ")
    assert checks == f"Checks: {', '.join(hook.checks)}."


@pytest.mark.parametrize("shape", OWN_DEVICES, indirect=True)
@pytest.mark.parametrize("hook", HOOKS.values(), ids=lambda hook: hook.name)
def test_the_page_has_every_hook_in_its_section(porting: str, hook: Hook) -> None:
    sections = {
        section.splitlines()[0].lower().replace(" ", "-"): section for section in porting.split("\n## ")[1:]
    }
    assert row(hook) in sections[hook.step].splitlines(), f"the row should be\n{row(hook)}"


def test_every_pattern_names_checks(shape: Shape, root: Path, porting: str) -> None:
    names = [name for level in LEVELS for name in mandatory.names(level, (3, 9), kit=True)]
    patterns = {check for part in parts_of(Repository(root), root / REPORTS) for check in part.checks}
    patterns |= {*re.findall(r'--select "([^"]+)"', porting)}
    assert ("runtime/memory/*" if shape in OWN_DEVICES else "runtime/arguments/*") in patterns
    for pattern in patterns:
        assert fnmatch.filter(names, pattern), pattern


def test_only_public_names_of_the_kit_are_used(shape: Shape, root: Path) -> None:
    used = []
    for path in (root / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                used += [(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                used += [(node.module or "", alias.name) for alias in node.names]
    kit = [(module, name) for module, name in used if module.partition(".")[0] == "triton_porting_kit"]
    assert len(kit) > (10 if shape in OWN_DEVICES else 9)
    for module, name in kit:
        assert is_public(module, name), f"{module}.{name}"
