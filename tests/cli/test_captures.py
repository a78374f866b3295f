"""`tpk capture` and `tpk replay` from outside."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import PROGRAM, Tpk, capture

Capture = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def own_process(cpu_backend: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)


def test_options_stand_before_the_program(tpk: Tpk) -> None:
    done = capture("--dest", "c", "--kernel", "tw*", "--limit", "2", "program.py", "7", "--limit", "9")
    assert done.returncode == 7
    assert done.stdout == "arguments ['7', '--limit', '9']\n"
    assert sorted(path.name for path in Path("c").glob("0*")) == ["0001-twice", "0002-twice"]
    assert "c/0002-twice: twice, grid 1x1x1, 2 buffers of 512 bytes in all" in done.stderr
    # What is there from before does not count.
    done = capture("--dest", "c", "--limit", "1", "program.py")
    assert sorted(path.name for path in Path("c").glob("0*")) == ["0001-twice", "0002-twice", "0003-twice"]


def test_no_launch(tpk: Tpk) -> None:
    Path("end.py").write_text("import sys; sys.exit(int(sys.argv[1]))")
    said = "tpk: no launch of a kernel 'four*' was recorded"
    done = tpk("capture", "--kernel", "four*", "end.py", "0")
    assert (done.status, done.errors) == (0, f"{said}; only drivers made with the kit record launches\n")
    done = tpk("capture", "--kernel", "four*", "end.py", "3")
    assert (done.status, done.errors) == (3, f"{said}\n")  # the program itself says why it failed


def test_replay(tpk: Tpk) -> None:
    capture("program.py")
    outcome = tpk("replay", "captures/0004-thrice", "--repeat", "2", "--dump", "out")
    assert outcome.status == 0, outcome.errors
    first, *_, last = outcome.output.splitlines()
    assert first == "thrice, grid 1x1x1, 2 buffers of 512 bytes in all"
    assert last == "all memory is identical to the recording, bit for bit, in all 2 runs"
    assert len(list(Path("out").iterdir())) == 2


def test_a_replay_that_differs(tpk: Tpk) -> None:
    capture("--kernel", "thrice", "program.py")
    launch = Path("captures/0001-thrice")
    from triton_porting_kit.replay.manifest import digest

    # As if the other kernel's output had been recorded: nothing.
    data = json.loads((launch / "manifest.json").read_text())
    (buffer,) = (buffer for buffer in data["buffers"] if "out_ptr" in buffer["names"])
    buffer["after"] = buffer["before"]
    (launch / "manifest.json").write_text(json.dumps(data | {"digest": digest(data)}))
    outcome = tpk("replay", str(launch))
    assert outcome.status == 1
    assert (
        "(out_ptr: *fp32): 63 of 64 elements differ; the first at [1] (byte 4 of the buffer): "
        in outcome.output
    )
    assert outcome.output.endswith("run 1 differs from the recording\n")


def test_emit(tpk: Tpk) -> None:
    capture("--kernel", "thrice", "program.py")
    outcome = tpk("replay", "captures/0001-thrice", "--emit-cpp", "--dest", "program")
    assert (outcome.status, outcome.errors) == (0, "")
    assert "program/README.md describes how" in outcome.output
    made = {path.name for path in Path("program").iterdir()}
    assert made == {
        "CMakeLists.txt",
        "CMakePresets.json",
        "README.md",
        "data",
        "host",
        "host_cpu.h",
        "main.cpp",
        "replay.h",
    }
    outcome = tpk("replay", "captures/0001-thrice", "--emit-cpp")
    assert Path("captures/0001-thrice/cpp/main.cpp").is_file()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("capture", "missing.py"), 2, "tpk: there is no file missing.py"),
        (("replay", "missing"), 2, "tpk: there is no folder missing"),
        (("replay", "."), 1, "tpk: . has no recorded launch: there is no manifest.json"),
        (("replay", ".", "--dest", "x"), 2, "tpk: --dest and --runtime require --emit-cpp"),
    ],
)
def test_mistakes(tpk: Tpk, arguments: tuple[str, ...], status: int, message: str) -> None:
    outcome = tpk(*arguments)
    assert outcome.status == status
    assert outcome.errors.startswith(message)


def test_folders_that_others_can_write(tpk: Tpk) -> None:
    capture("--limit", "1", "program.py")
    Path("captures/0001-twice").chmod(0o770)
    outcome = tpk("replay", "captures/0001-twice")
    assert outcome.status == 2
    assert "its mode 0770 lets others write to it; replay only what you recorded yourself" in outcome.errors
    outcome = tpk("replay", "captures")
    assert "name one of the folders in it, such as captures/0001-twice" in outcome.errors
