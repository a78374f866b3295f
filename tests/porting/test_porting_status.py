"""`tpk status`: whose each part is, where, and what its checks ended in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.driver import HOOKS
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.porting.names import names_of
from triton_porting_kit.porting.new import make
from triton_porting_kit.porting.sources import Repository
from triton_porting_kit.porting.status import REPORTS, Part, State, parts_of, run_status

Edit = Callable[[str, str, str], None]
"""Replaces a text, which has to be there, in a file."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(
        names_of("chip-7", {}), vendor="Chips", chip="Seven", into=tmp_path, own_repository=False
    ).path


@pytest.fixture
def edit(root: Path) -> Edit:
    def replace(file: str, old: str, new: str) -> None:
        text = (root / file).read_text()
        assert old in text
        (root / file).write_text(text.replace(old, new))

    return replace


def parts(root: Path) -> dict[str, Part]:
    return {part.name: part for part in parts_of(Repository(root), root / REPORTS)}


def states(root: Path) -> dict[str, State]:
    return {name: part.state for name, part in parts(root).items()}


def text_at(root: Path, part: Part) -> str:
    assert part.place is not None
    return (root / part.place.file).read_text().splitlines()[part.place.line - 1]


def test_a_new_repository_is_the_virtual_npus_in_all_parts(root: Path) -> None:
    found = parts(root)
    assert [*found] == ["runtime library", *HOOKS, "launcher", "target", "binary"]
    assert {part.state for part in found.values()} == {State.VIRTUAL}
    for name in HOOKS:
        # The native launch routine ends in the device's function.
        assert f"Device::{name if name != 'launch_entry' else 'launch'}(" in text_at(root, found[name])
    assert "find_package(vnpu" in text_at(root, found["runtime library"])
    assert "CpuTarget" in text_at(root, found["target"])
    assert "link_shared_object" in text_at(root, found["binary"])
    assert "Launcher" in text_at(root, found["launcher"])


def test_a_hook_that_calls_another_runtime_is_the_vendors(root: Path, edit: Edit) -> None:
    edit(
        "native/device.cpp",
        "vnpu_fill(chip().get(), stream, dst,",
        "seven_fill(stream, /* vnpu_fill() */ dst,",
    )
    found = parts(root)
    assert found["memset"].state is State.OWN
    assert "Device::memset(" in text_at(root, found["memset"])
    assert {part.state for name, part in found.items() if name != "memset"} == {State.VIRTUAL}


def test_launching_is_one_function_for_two_hooks(root: Path, edit: Edit) -> None:
    edit("native/device.cpp", "vnpu_launch(", "seven_launch(")
    found = states(root)
    assert {name for name, state in found.items() if state is State.OWN} == {
        "launch",
        "launch_entry",
        "launcher",
    }


def test_a_hook_in_python_alone_is_the_vendors(root: Path, edit: Edit) -> None:
    device = "src/triton_chip_7/device.py"
    edit(device, "self._native.memset(dst, value, size, stream)", "runtime.fill(dst, value, size)")
    found = parts(root)["memset"]
    assert found.state is State.OWN
    assert "def memset(" in text_at(root, found)


def test_a_hook_that_was_removed_is_missing(root: Path, edit: Edit) -> None:
    device = "src/triton_chip_7/device.py"
    edit(device, "def memset(", "def fill(")
    edit(device, "self._native.memfree(addr)", "raise NotImplementedError")
    found = parts(root)
    assert {name for name, part in found.items() if part.state is State.MISSING} == {"memset", "memfree"}
    assert "class Chip7Device(" in text_at(root, found["memset"])


def test_a_native_function_that_was_removed_is_missing(root: Path, edit: Edit) -> None:
    edit("native/device.cpp", "Device::create_event()", "Device::new_event()")
    edit("native/bindings.cpp", '"create_event"', '"new_event"')
    found = parts(root)["create_event"]
    assert found.state is State.MISSING
    assert "def create_event(" in text_at(root, found)


def test_a_native_function_may_be_bound_as_it_is(root: Path, edit: Edit) -> None:
    edit("native/device.cpp", "uint64_t Device::create_event()", "uint64_t Device::fresh()")
    found = parts(root)["create_event"]
    assert found.state is State.OWN
    assert '"create_event"' in text_at(root, found)


def test_a_device_needs_no_native_launch_routine(root: Path, edit: Edit) -> None:
    edit("src/triton_chip_7/device.py", "def launch_entry(", "def other(")
    assert states(root)["launch_entry"] is State.OWN


def test_steps_beside_the_hooks(root: Path, edit: Edit) -> None:
    edit("CMakeLists.txt", "find_package(vnpu", "find_package(seven")
    edit("src/triton_chip_7/compiler.py", "CpuTarget", "SevenTarget")
    edit("src/triton_chip_7/compiler.py", "link_shared_object(", "seven_link(")
    edit("src/triton_chip_7/launcher.py", "super().__init__(source, metadata, entry)",
         "super().__init__(source, metadata, entry, runtime=RuntimeSymbol('seven', '<seven.h>'))")  # fmt: skip
    found = parts(root)
    assert {name for name, part in found.items() if part.state is State.OWN} == {
        "runtime library",
        "target",
        "binary",
        "launcher",
    }
    assert "RuntimeSymbol" in text_at(root, found["launcher"])


# --- results ---------------------------------------------------------------------------------------------


def passed(name: str) -> Record:
    evidence = [{"kind": "expectation", "what": "it", "holds": True}]
    return Record(name, name.partition("/")[0], "It works.", 0.1, 0, evidence)


def failed(name: str) -> Record:
    return Record(
        name, "runtime", "It works.", 0.1, 0, [{"kind": "expectation", "what": "it", "holds": False}]
    )


def write_run(folder: Path, start: str, *records: Record) -> None:
    folder.mkdir(parents=True)
    run: dict[str, Any] = {
        "backend": "chip_7",
        "start": start,
        "planned": [record.name for record in records],
    }
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "records.jsonl").write_text("".join(json.dumps(record.to_json()) + "\n" for record in records))


def test_the_last_result_of_each_check_counts(root: Path) -> None:
    assert not any(part.results for part in parts(root).values())
    names = [f"runtime/copies/memset-{n}-at-0" for n in (1, 2, 3)]
    write_run(root / REPORTS, "2026-01-02T00:00:00", *map(passed, names))
    assert parts(root)["memset"].results == {Status.PASS: 3}
    assert not parts(root)["memcpy_htod"].results
    write_run(root / REPORTS / "selected", "2026-01-03T00:00:00", failed(names[0]))
    assert parts(root)["memset"].results == {Status.PASS: 2, Status.FAIL: 1}


def test_an_earlier_selection_does_not_count(root: Path) -> None:
    name = "runtime/copies/memset-1-at-0"
    write_run(root / REPORTS, "2026-01-02T00:00:00", passed(name))
    write_run(root / REPORTS / "selected", "2026-01-01T00:00:00", failed(name))
    assert parts(root)["memset"].results == {Status.PASS: 1}


# --- the command -----------------------------------------------------------------------------------------


def test_the_table(root: Path, edit: Edit, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(
        root / REPORTS,
        "2026-01-02T00:00:00",
        failed("runtime/memory/size-1"),
        passed("runtime/memory/size-2"),
    )
    edit("native/device.cpp", "vnpu_fill", "seven_fill")
    assert run_status(root, None) == 0
    lines = capsys.readouterr().out.splitlines()
    row = {line.split("  ")[0]: line for line in lines}
    assert "virtual NPU" in row["memalloc"]
    assert "native/device.cpp:" in row["memalloc"]
    assert "runtime/memory/size-*" in row["memalloc"]
    assert "1 fail, 1 pass" in row["memalloc"]
    assert " own " in row["memset"]
    assert "not run" in row["memset"]
    assert lines[-1] == f"chip_7: 1 of {len(HOOKS) + 4} parts are the vendor's own"


def test_the_exit_status_says_that_a_hook_is_missing(
    root: Path, edit: Edit, capsys: pytest.CaptureFixture[str]
) -> None:
    edit("src/triton_chip_7/device.py", "def reset(", "def restart(")
    assert run_status(root, None) == 1
    assert "missing" in capsys.readouterr().out


def test_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_status(root, None, as_json=True) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["backend"], data["own"]) == ("chip_7", 0)
    assert data["parts"][2] == {
        "name": "memalloc",
        "state": "virtual NPU",
        "file": "native/device.cpp",
        "line": data["parts"][2]["line"],
        "checks": [*HOOKS["memalloc"].checks],
        "results": {},
    }


@pytest.mark.parametrize("content", [None, "[project]\nname = 'x'\n", "no [ toml"])
def test_what_is_no_repository_of_a_backend_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "pyproject.toml").write_text(content)
    with pytest.raises(PortingKitError, match=r"pyproject\.toml"):
        run_status(tmp_path, None)


def test_sources_that_python_cannot_read_are_named(root: Path) -> None:
    (root / "src" / "triton_chip_7" / "driver.py").write_text("def broken(:\n")
    with pytest.raises(PortingKitError, match=r"driver\.py"):
        run_status(root, None)
