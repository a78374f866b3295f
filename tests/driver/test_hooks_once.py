"""Each hook is declared once: how often its name is written, and what is held against the table instead."""

from __future__ import annotations

import ast
import fnmatch
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from triton_porting_kit.conformance import mandatory
from triton_porting_kit.conformance.faults.driver_faults import TABLE
from triton_porting_kit.conformance.faults.fault import Seams
from triton_porting_kit.driver import HOOKS
from triton_porting_kit.driver.hip import _hip
from triton_porting_kit.driver.host import _host
from triton_porting_kit.driver.native_device import NativeDevice
from triton_porting_kit.driver.native_stub import STUB, stub

pytestmark = pytest.mark.xdist_group("hooks-once")  # one process reads all files, which takes seconds
ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "compiler", "launcher", "driver", "backends", "kernels", "conformance", "backend_template")
MOST = 5
IMPLEMENTATIONS = (
    "driver/host/",
    "driver/hip/",
    "driver/opencl/",
    "driver/virtual/",
    "backend_template/template/",
)
"""Devices, which define each hook: what they do behind it is their own."""
OTHER_OBJECTS = ("driver/interface.py", "driver/array.py", "driver/adapter.py")
"""Events, streams, arrays and Triton's driver have methods that are called like hooks, as torch or Triton names them."""
GENERATED = ("driver/_native_hooks.pyi",)


def code() -> Iterator[tuple[str, str]]:
    """The hand-written files of the kit, but for devices."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            written = path.suffix in (".py", ".pyi", ".h", ".cpp", ".jinja", ".j2")
            if written and not name.startswith((*IMPLEMENTATIONS, *OTHER_OBJECTS, *GENERATED)):
                yield name, path.read_text()


WORDS = {"properties", "launch", "reset", "synchronize"}
"""Hooks whose names are words: texts of them are about much else."""


def named(text: str) -> set[str]:
    """The hooks that Python declares or lists: methods of classes of hooks, texts, and keywords that replace hooks.

    A text in a file that calls the hook tells of that call.
    """
    found: set[str] = set()
    called: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            found |= methods if len(methods & {*HOOKS}) >= 3 else set()
        elif isinstance(node, ast.Attribute):
            called.add(node.attr)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value} - called - WORDS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_device":
            found |= {keyword.arg for keyword in node.keywords if keyword.arg}
    return found & {*HOOKS}


def bound(text: str) -> set[str]:
    """The hooks that C++ has as texts, or in the macro that makes texts of names."""
    found = {*re.findall(r'"(\w+)"', text), *re.findall(r"TPK_HOOK\((\w+)", text)}
    return found & {*HOOKS}


@functools.cache
def written() -> dict[str, set[str]]:
    """By file: the hooks that it names."""
    return {path: (named if path.endswith((".py", ".pyi")) else bound)(text) for path, text in code()}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_named_in_few_files(hook: str) -> None:
    """Who calls a hook and the devices themselves are not counted: every device defines it, with its own code."""
    found = {path for path, hooks in written().items() if hook in hooks}
    assert "driver/device.py" in found
    assert len(found) <= MOST, found


def test_no_device_binds_what_the_kit_binds() -> None:
    """Devices bind only hooks that take other arguments than usual."""
    own = {
        "driver/host/native": set(),
        "driver/hip/native": {"properties", "get_function", "launch_entry", "reset"},
        "backend_template/template/native": {"properties", "launch_entry"},
    }
    for folder, expected in own.items():
        (file,) = (ROOT / folder).glob("bindings.cpp*")
        text = file.read_text()
        assert bound(text) - {"launch_entry"} == expected - {"launch_entry"}, folder
        assert "tpk::bindHooks(" in text


def test_the_stub_is_what_the_protocol_says() -> None:
    assert STUB.read_text() == stub(), "run `python -m triton_porting_kit.driver.native_stub`"


@pytest.mark.parametrize("native", [_host.Host, _hip.Device], ids=lambda cls: cls.__name__)
def test_native_objects_have_what_the_stub_says(native: type) -> None:
    found = re.findall(r"def (\w+)\(", stub())
    handed_on = {name for name in HOOKS if name in vars(NativeDevice)}
    assert {*found} >= {
        name for name in handed_on if not hasattr(getattr(NativeDevice, name), "missing_hook")
    }
    for name in found:
        assert callable(getattr(native, name)), name
        assert not hasattr(getattr(native, name), "missing_hook")


def test_faults_are_of_hooks_and_caught_by_their_checks() -> None:
    """Every hook that the driver's faults replace is one of the table, and nearly every one of the table is replaced."""
    replaced: dict[str, list[str]] = {}
    for fault in TABLE:
        seams = Seams()
        fault.apply(seams)
        for name in seams.methods["device"]:
            replaced.setdefault(name, []).extend(fault.caught_by)
    assert {*replaced} <= {*HOOKS}
    # Without create_event there is no event to try; the launcher's faults are behind `launch_entry`. Several devices are
    # optional.
    several = {name for name, hook in HOOKS.items() if hook.step in ("peers", "groups")}
    assert {*HOOKS} - {*replaced} == {"create_event", "destroy_event", "launch_entry"} | several
    checks = mandatory.names("runtime", (3, 9), kit=True)
    for name, patterns in replaced.items():
        caught = {check for pattern in patterns for check in fnmatch.filter(checks, pattern)}
        assert caught, name


def test_checks_of_hooks_are_in_the_sections_of_their_steps() -> None:
    """A check of a section of hooks is one that a hook names, or it is about several hooks of that section."""
    steps = {hook.step for hook in HOOKS.values()}
    sections = {pattern.split("/")[1] for hook in HOOKS.values() for pattern in hook.checks}
    assert sections - {"discovery"} <= steps | {"device", "grids", "arguments"}
    for section in ("memory", "copies", "streams", "events", "modules"):
        of_section = [
            check for check in mandatory.names("runtime", (3, 9), kit=True) if check.split("/")[1] == section
        ]
        patterns = [pattern for hook in HOOKS.values() for pattern in hook.checks]
        named_checks = [check for check in of_section if any(fnmatch.fnmatch(check, p) for p in patterns)]
        assert len(named_checks) > len(of_section) / 2, section


def test_the_contract_lists_every_hook_once() -> None:
    text = (ROOT / "docs" / "contracts.md").read_text()
    table = text[text.index("A `Device` has these hooks") :].split("\n\n")[1]
    assert re.findall(r"`(\w+)`", table) == [*HOOKS]
