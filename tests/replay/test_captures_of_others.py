"""A recorded launch that somebody else made: it is data, and nothing of it leaves its folder."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from replay_helpers import document, rewrite

from triton_porting_kit.cli import main
from triton_porting_kit.errors import CaptureError
from triton_porting_kit.replay import emit_cpp, read
from triton_porting_kit.replay.manifest import NAME


@pytest.fixture
def limited() -> Iterator[None]:
    """What hangs fails."""

    def late(*_: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("planted", ["cpp", "cpp/data", "cpp/main.cpp", "cpp/data/arguments.bin"])
def test_no_program_is_written_through_a_link(plain: Path, tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = plain / planted
    link.parent.mkdir(parents=True, exist_ok=True)
    is_file = "." in link.name
    target = outside / "kept" if is_file else outside
    if is_file:
        target.write_text("mine")
    link.symlink_to(target)
    with pytest.raises(CaptureError, match="link"):
        emit_cpp(read(plain))
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == (
        [("kept", "mine")] if is_file else []
    )
    assert link.is_symlink()


def test_a_program_is_written_into_a_folder_that_the_user_names_by_a_link(
    plain: Path, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    emit_cpp(read(plain), tmp_path / "link")
    assert (tmp_path / "real" / "main.cpp").is_file()


@pytest.mark.parametrize("backend", ["cpu", "elsewhere", "stranger"])
def test_a_manifest_names_nothing_that_is_imported(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    (tmp_path / "stranger.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    rewrite(plain, document(plain) | {"runtime": "stranger:Runtime", "backend": backend})
    with pytest.raises(CaptureError, match="'stranger:Runtime', which no installed backend"):
        emit_cpp(read(plain), tmp_path / "program")
    assert "stranger" not in sys.modules


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of what is at a path of a manifest."""

    def apply(data: dict[str, Any]) -> None:
        *parts, last = (int(part) if part.isdigit() else part for part in path.split("."))
        held: Any = data
        for part in parts:
            held = held[part]
        held[last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kernel.name", 'x");\n  std::system("true'),
        ("kernel.name", "x\n#include </etc/passwd>"),
        ("kernel.name", ""),
        ("time", "2026\nint evil = 0;"),
        ("backend", "a b"),
        ("runtime", "a;b"),
        ("versions.triton", "3.9\n#error"),
        ("error", {"type": "A\nB", "message": ""}),
        ("arguments.slots.0.type", "*fp32\n"),
        ("arguments.block.file", "../arguments.bin"),
        ("arguments.block.file", "arguments.bin\n"),
        ("buffers.0.alignment", 3),
        ("kernel.binary.size", 1 << 70),
    ],
)
def test_names_that_could_be_code_are_refused(plain: Path, path: str, value: Any) -> None:
    data = document(plain)
    change(path, value)(data)
    rewrite(plain, data)
    with pytest.raises(CaptureError, match=r"does not match its schema|more than 64 bits"):
        read(plain)


def test_no_text_of_a_manifest_ends_a_comment_or_goes_on_in_the_next_line(
    plain: Path, tmp_path: Path
) -> None:
    data = document(plain)
    data["kernel"]["source_file"] = "x\n#error\\"
    data["notes"] = ["a note\\", "another\r\n#error", "\ud800"]
    data["device"]["name"] = "chip\n#error <b>`[x](y)"
    for slot in data["arguments"]["slots"]:
        slot["name"] += "\\\n#error \\"
        slot["value"] = "\\"
    rewrite(plain, data)
    emit_cpp(read(plain), tmp_path)
    lines = (tmp_path / "main.cpp").read_text().splitlines()
    assert sum("#error" in line for line in lines) > 3
    for line in lines:
        code, comment, _ = line.partition("//")
        assert not line.endswith("\\")
        assert "#error" not in code or '"' in code
        assert "#error" not in line or comment or '"' in code
    assert r"\<b\>\`\[x\](y)" in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("arguments.slots.0.offset", 10**9, "has 8 bytes at 1,000,000,000 in an argument block"),
        ("arguments.slots.1.offset", 0, "the one before ends at 8"),
        ("arguments.slots.0.offset", 4, "has 8 bytes at 4"),
        ("arguments.slots.0.size", 4, "has the type *fp32, but 4 bytes"),
        ("arguments.slots.0.type", "fp32", "has the type fp32"),
        ("arguments.slots.0.type", "strange", "has the type strange, but 8 bytes"),
        ("arguments.slots.0.buffer", 10**9, "points to buffer 1,000,000,000, and there are"),
        ("arguments.slots.0.buffer_offset", 10**9, "points to byte 1,000,000,000 of a buffer"),
        ("arguments.block.size", 10**9, "and the manifest says 1,000,000,000"),
        ("buffers.0.size", 10**12, "buffer 0 has 1,000,000,000,000 bytes"),
        ("buffers.0.before.size", 10**12, "and the manifest says 1,000,000,000,000"),
        ("buffers.0.after", None, "has no recorded content after a launch that returned"),
        ("state", "failed", "the launch is failed, without an error"),
    ],
)
def test_a_manifest_that_contradicts_itself(plain: Path, path: str, value: Any, message: str) -> None:
    data = document(plain)
    change(path, value)(data)
    rewrite(plain, data)
    with pytest.raises(CaptureError) as caught:
        read(plain)
    assert message in str(caught.value)


def test_a_buffer_that_no_parameter_leads_to(plain: Path) -> None:
    data = document(plain)
    data["buffers"].append(data["buffers"][0])
    rewrite(plain, data)
    with pytest.raises(CaptureError, match="has no parameter that points to it"):
        read(plain)


@pytest.mark.parametrize("name", [NAME, "arguments.bin", "buffer-0.before.bin"])
@pytest.mark.parametrize("kind", ["a named pipe", "a symbolic link", "a folder"])
def test_only_regular_files_are_read(plain: Path, name: str, kind: str, limited: None) -> None:
    path = plain / name
    path.rename(plain / "moved")
    if kind == "a named pipe":
        os.mkfifo(path, 0o600)
    elif kind == "a folder":
        path.mkdir(0o700)
    else:
        path.symlink_to(plain / "moved")
    with pytest.raises(Exception, match=kind) as caught:
        read(plain)
    assert type(caught.value).__name__ in ("CaptureError", "InsecureCacheError")


def test_data_is_of_bounded_depth(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for depth in (100, 100_000):
        (plain / NAME).write_text('{"format": 1, "layout": ' + "[" * depth + "]" * depth + "}")
        with pytest.raises(SystemExit) as ended:
            main(["replay", str(plain)])
        assert ended.value.code == 1
        assert capsys.readouterr().err == (
            f"tpk: {plain / NAME} is refused: lists and tables are nested more than 64 deep\n"
        )


@pytest.mark.parametrize("name", [NAME, "buffer-0.before.bin"])
def test_files_are_of_bounded_size(plain: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPK_CAPTURE_LIMIT", raising=False)
    os.truncate(plain / name, 1 << 40)  # a sparse file
    with pytest.raises(CaptureError, match=rf"{name} has more than [0-9,]+ bytes, the limit for such a file"):
        read(plain)


def test_all_files_together_are_of_bounded_size(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total = sum(file.size for file in read(plain).manifest.files().values())
    monkeypatch.setenv("TPK_CAPTURE_LIMIT", str(total))
    read(plain)
    monkeypatch.setenv("TPK_CAPTURE_LIMIT", str(total - 1))
    with pytest.raises(CaptureError, match="or set TPK_CAPTURE_LIMIT to more if you recorded it"):
        read(plain)


@pytest.mark.parametrize("number", ["NaN", "1e999", "1" + "0" * 5000, "1" + "0" * 30])
def test_numbers_are_ones_that_json_and_c_have(plain: Path, number: str) -> None:
    text = json.dumps(document(plain) | {"device": {"clock": 7777}}).replace("7777", number)
    (plain / NAME).write_text(text)
    with pytest.raises(CaptureError, match=r"is refused: a|is not JSON: Exceeds the limit"):
        read(plain)


def test_a_terminal_obeys_nothing_of_a_launch(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = document(plain)
    data["notes"] = ["\x1b]0;title\x07 \x1b[2J \u202e \r"]
    rewrite(plain, data)
    with pytest.raises(SystemExit):
        main(["replay", str(plain), "--emit-cpp"])
    said = capsys.readouterr()
    assert r"note: \x1b]0;title\x07 \x1b[2J \u202e \r" in said.err
    assert not set(said.out + said.err) & set("\x1b\x07\u202e\r")
