"""Files that somebody else made: regular ones, of bounded size and depth, and text that is seen."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_porting_kit import untrusted
from triton_porting_kit.untrusted import DEPTH, Folder, read_bytes, shown, write_file


class FileError(Exception):
    """What these tests ask for."""


# --- reading -----------------------------------------------------------------------------------------


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert read_bytes(tmp_path / "file", 7, FileError) == b"content"
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_bytes(tmp_path / "link", 7, FileError, follow=True) == b"content"
    with Folder(tmp_path, FileError) as folder:
        assert folder.read("file", 7) == b"content"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "No such file or directory"),
        ("folder", "a folder, not a file"),
        ("pipe", "a named pipe, not a file"),
        ("link", "a symbolic link, which is not followed"),
        ("socket", "it is a socket or a device"),
        ("large", "has more than 7 bytes"),
        ("null\0byte", "null byte"),
        ("x" * 300, "File name too long"),
    ],
)
def test_what_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    import socket

    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "large").write_bytes(b"contents")
    with socket.socket(socket.AF_UNIX) as bound:
        monkeypatch.chdir(tmp_path)  # the address of a socket is short
        bound.bind("socket")
        with pytest.raises(FileError, match=message) as caught:
            read_bytes(tmp_path / name, 7, FileError, remedy="do this")
    assert str(caught.value).endswith("; do this")
    assert name in str(caught.value)


def test_a_file_that_grows_is_cut_off() -> None:
    with pytest.raises(FileError, match="has more than 0 bytes"):
        read_bytes(Path("/proc/self/status"), 0, FileError)  # says that it has none


@pytest.mark.parametrize("parse", ["json", "toml", "yaml", "message_pack"])
def test_depth(parse: str) -> None:
    """As deep as may be, one more, and so deep that parsers give up."""
    import msgpack

    make: dict[str, Any] = {
        "json": lambda depth: b"[" * depth + b"]" * depth,
        "toml": lambda depth: b"x = " + b"[" * (depth - 1) + b"]" * (depth - 1),
        "yaml": lambda depth: b"[" * depth + b"]" * depth,
        "message_pack": lambda depth: b"\x91" * (depth - 1) + b"\x90",
    }
    reader = getattr(untrusted, f"parse_{parse}")
    assert msgpack.unpackb(make["message_pack"](2)) == [[]]
    reader(make[parse](DEPTH), "it", FileError)
    for depth in (DEPTH + 2, 5000):
        with pytest.raises(
            FileError, match=r"it is refused: lists and tables are nested more than 64|it is not MessagePack"
        ):
            reader(make[parse](depth), "it", FileError)


@pytest.mark.parametrize(
    ("parse", "content", "message"),
    [
        ("json", b"{", "is not JSON"),
        ("json", b"\xff", "is not JSON: 'utf-8' codec"),
        ("json", b"[NaN]", "a number is not finite"),
        ("json", b"[1e999]", "a number is not finite"),
        ("json", b"18446744073709551616", "more than 64 bits"),
        ("json", b"9" * 5000, "is not JSON: Exceeds the limit"),
        ("toml", b"x =", "is not TOML"),
        ("toml", b"x = inf", "a number is not finite"),
        ("toml", b"\xff", "is not TOML"),
        ("yaml", b"{ [", "is not YAML"),
        ("yaml", b"a: &x [1]\nb: *x", "it has an alias"),
        (
            "yaml",
            b"!!python/object/apply:os.system ['true']",
            "is not YAML: could not determine a constructor",
        ),
        ("message_pack", b"\xc1", "is not MessagePack"),
        ("message_pack", b"\xdd\xff\xff\xff\xff", "is not MessagePack"),
        ("message_pack", b"\xdd\x00\x01\x00\x00" + b"\xc0" * 65536, "exceeds max_array_len"),
    ],
)
def test_what_is_no_data(parse: str, content: bytes, message: str) -> None:
    with pytest.raises(FileError, match=message) as caught:
        getattr(untrusted, f"parse_{parse}")(content, "it", FileError)
    assert str(caught.value).startswith(("it is not ", "it is refused: "))


def test_numbers_that_are_read() -> None:
    assert untrusted.parse_json(b"[18446744073709551615, -9223372036854775808]", "it", FileError)
    assert untrusted.parse_json(b"[NaN]", "it", FileError, finite=False)


def test_a_few_aliases_are_not_many_values() -> None:
    text = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for number in range(1, 20):
        text += f"a{number}: &a{number} [{', '.join([f'*a{number - 1}' if number > 1 else '*a'] * 9)}]\n"
    with pytest.raises(FileError, match="alias"):
        untrusted.parse_yaml(text.encode(), "it", FileError)


# --- writing -----------------------------------------------------------------------------------------


def test_files_are_written_whole(tmp_path: Path) -> None:
    with Folder(tmp_path / "made", FileError, make=True) as folder:
        folder.write("a", b"one")
        folder.write("deep/er/b", b"two")
        folder.write("a", b"three")
        with folder.open("log", append=False) as log:
            log.write("1")
        with folder.open("log", append=True) as log:
            log.write("2")
        assert folder.has("deep/er/b")
        assert not folder.has("b")
        folder.remove("a")
        folder.remove("a")
    found = {p.relative_to(tmp_path).as_posix(): p.read_text() for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {"made/deep/er/b": "two", "made/log": "12"}


def test_modes_are_those_of_other_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "file", b"", FileError)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "kind", ["link to a file", "link to nothing", "link to a folder", "folder", "pipe", "file"]
)
@pytest.mark.parametrize("depth", [0, 1])
def test_nothing_is_written_elsewhere(tmp_path: Path, kind: str, depth: int) -> None:
    """Whatever lies in the place of the file (depth 0) or of a folder on the way (1)."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "kept").write_text("mine")
    planted = inside / "name"
    match kind:
        case "link to a file":
            planted.symlink_to(outside / "kept")
        case "link to nothing":
            planted.symlink_to(outside / "new")
        case "link to a folder":
            planted.symlink_to(outside)
        case "folder":
            planted.mkdir()
        case "pipe":
            os.mkfifo(planted)
        case "file":
            planted.write_text("old")
    name = "name/file" if depth else "name"
    with Folder(inside, FileError) as folder:
        if kind == ("folder" if depth else "file"):
            folder.write(name, b"new")
            assert (inside / name).read_bytes() == b"new"
        else:
            for action in (
                lambda: folder.write(name, b"new"),
                lambda: folder.open(name, append=False),
                lambda: folder.open(name, append=True),
            ):
                with pytest.raises(FileError):
                    action()
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("kept", "mine")]


def test_a_full_disk_is_not_taken_for_something_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with (
        Folder(tmp_path, FileError) as folder,
        pytest.raises(FileError, match=r"name cannot be used: No space left on device$"),
    ):
        folder.write("name", b"")


def test_two_make_a_folder_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_system = os.mkdir

    def second(path: str, *, dir_fd: int) -> None:
        by_system(path, dir_fd=dir_fd)  # another process was quicker
        by_system(path, dir_fd=dir_fd)

    with Folder(tmp_path, FileError) as folder:
        monkeypatch.setattr(os, "mkdir", second)
        folder.write("made/name", b"here")
    assert (tmp_path / "made" / "name").read_bytes() == b"here"


@pytest.mark.parametrize("name", ["", "..", "../x", "a/../b", "/etc/x", "a//b", ".", "a\0b"])
def test_names_that_lead_out(tmp_path: Path, name: str) -> None:
    with Folder(tmp_path, FileError) as folder:
        for action in (folder.has, lambda n: folder.write(n, b""), lambda n: folder.read(n, 1)):
            with pytest.raises(FileError, match="is not a valid name of a file"):
                action(name)


def test_a_folder_that_is_swapped_for_a_link_is_still_the_folder(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with Folder(tmp_path / "one", FileError) as folder:
        (tmp_path / "one").rename(tmp_path / "moved")
        (tmp_path / "one").symlink_to(tmp_path / "two")
        folder.write("file", b"")
    assert os.listdir(tmp_path / "moved") == ["file"]
    assert not os.listdir(tmp_path / "two")


# --- showing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("größer 芯片 🙂", "größer 芯片 🙂"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\x9b0m", r"a\x9b0m"),
        ("a\rb\bc\x7f", r"a\rb\x08c\x7f"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("\u202eevil\u2066", r"\u202eevil\u2066"),
        ("\ud800", r"\ud800"),
        ("\u200b\ufeff\U000e0041", r"\u200b\ufeff\U000e0041"),
    ],
)
def test_what_is_obeyed_or_hidden_is_text(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_a_line_is_one_line() -> None:
    assert shown("a\nb\tc", lines=False) == r"a\nb\tc"


@given(st.text())
def test_any_text_is_shown(text: str) -> None:
    found = shown(text)
    found.encode()
    assert not {c for c in found if (ord(c) < 32 or 0x7F <= ord(c) < 0xA0) and c not in "\n\t"}
    assert shown(found) == found


def test_what_a_command_says_is_shown(tmp_path: Path) -> None:
    name = "\x1b]0;x\x07.json"
    command = [sys.executable, "-m", "triton_porting_kit.cli", "verify", str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("tpk: ")
    assert "\\x1b]0;x\\x07.json cannot be read: No such file or directory" in done.stderr
    assert not set(done.stderr) & set("\x1b\x07")


def test_the_page_has_the_limits() -> None:
    page = (Path(__file__).parents[1] / "docs" / "debugging.md").read_text(encoding="utf-8")
    table = page.partition("| limit | |")[2].partition("\n\n")[0]
    sizes = {
        name: getattr(untrusted, name)
        for name in ("MANIFEST", "METADATA", "REPORT", "RESULTS", "SOURCE", "PROFILE")
    }
    for name, size in sizes.items():
        assert f"| {size >> 20} MiB |" in table, name
    assert f"| {untrusted.ANSWERS >> 10} KiB |" in table
    assert f"| {untrusted.DEPTH}; 64 bits |" in table
