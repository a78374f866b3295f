"""Choosing a backend: what is found, and what is said where it is not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from triton_porting_kit.conformance.compile_only import TargetError, parse_target
from triton_porting_kit.conformance.memory import KitMemory
from triton_porting_kit.conformance.profile import Profile
from triton_porting_kit.conformance.sessions import BackendNotFound, open_session
from triton_porting_kit.conformance.stages import of_dump, of_places
from triton_porting_kit.toolchain import compat


def test_the_kit_s_device_is_found() -> None:
    session = open_session("cpu", Profile())
    assert isinstance(session.memory, KitMemory)
    assert session.memory.runs
    assert session.memory.describe()["memory"] == "kit"


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(BackendNotFound, match=r"no backend 'nowhere'; the registered ones are .*cpu"):
        open_session("nowhere", Profile())
    assert os.environ["TRITON_DEFAULT_BACKEND"] == "cpu", "what cannot be chosen is not chosen"


def in_process(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_a_backend_without_its_device_is_named() -> None:
    said = in_process(
        "from triton_porting_kit.conformance import sessions, profile\n"
        "try:\n    sessions.open_session('amd', profile.Profile())\n"
        "except sessions.BackendNotFound as error:\n    print(error)"
    )
    assert "Is its device available?" in said or "Triton activated" in said


def test_the_first_cause_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime import driver

    def active(self: object) -> object:
        raise RuntimeError("the extension cannot be loaded") from TypeError("an immutable type")

    monkeypatch.setattr(type(driver), "active", property(active))
    with pytest.raises(BackendNotFound, match=r"cannot be loaded, because of TypeError: an immutable type"):
        open_session("cpu", Profile())


TARGETS = ["cpu:x86_64:1"]
if compat.release() >= (3, 8):  # before, Triton's AMD backend needs torch to look at a pointer
    TARGETS.append("hip:gfx942:64")


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_are_compiled_where_no_device_is(target: str) -> None:
    backend = {"cpu": "cpu", "hip": "amd"}[target.partition(":")[0]]
    said = in_process(
        "from triton_porting_kit.conformance import batches, catalogue, profile, sessions\n"
        f"session = sessions.open_session({backend!r}, profile.Profile(), target={target!r})\n"
        "checks = [c for c in catalogue.checks(['language']) if c.batch == 'language/add-fp32']\n"
        "for record in batches.try_checks(checks, session):\n"
        "    print(record.status, [item['bytes'] > 500 for item in record.evidence])\n"
    )
    lines = said.splitlines()
    assert lines
    assert set(lines) == {"pass [True]"}


@pytest.mark.parametrize("text", ["hip", "hip:gfx942", "hip:gfx942:wide", "::", "a:b:c:1"])
def test_targets_are_checked(text: str) -> None:
    with pytest.raises(TargetError, match="BACKEND:ARCH:WARP"):
        parse_target(text)


def test_targets() -> None:
    assert parse_target("cuda:90:32").arch == 90
    assert parse_target("hip:gfx942:64").arch == "gfx942"


COMPILER = "/x/triton/compiler/compiler.py"
JIT = "/x/triton/runtime/jit.py"


@pytest.mark.parametrize(
    ("places", "stage"),
    [
        ([("/x/check.py", "body")], "check"),
        ([(JIT, "run"), (COMPILER, "compile"), ("/v/b.py", "f")], "compiled"),
        ([(JIT, "run"), (COMPILER, "_init_handles"), ("/v/d.py", "load_binary")], "loaded"),
        ([(JIT, "run"), ("/v/l.py", "__call__")], "launched"),
        ([("/x/memory.py", "synchronize")], "launched"),
    ],
)
def test_stages_of_stacks(places: list[tuple[str, str]], stage: str) -> None:
    assert of_places(places) == stage
    lines = [f'  File "{file}", line 3 in {function}' for file, function in reversed(places)]
    assert of_dump("Fatal Python error: Segmentation fault\n" + "\n".join(lines)) == stage
