"""Triton's digest of its own files: read from the cache as long as the files are the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import triton
from triton.runtime import cache

from triton_porting_kit.toolchain import compat
from triton_porting_kit.toolchain.compat.triton_key import _fingerprint

KEY = f"{triton.__version__}-key"


class ByTriton:
    """What Triton's own function would be, with the number of its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        return KEY


@pytest.fixture
def by_triton(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ByTriton:
    monkeypatch.delenv("TPK_CACHE_DIR", raising=False)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    found = ByTriton()
    monkeypatch.setattr(cache, "triton_key", found)
    return found


def in_another_process(monkeypatch: pytest.MonkeyPatch, by_triton: ByTriton) -> str:
    """The key as a process finds it that has not asked before."""
    monkeypatch.setattr(cache, "triton_key", by_triton)
    compat.keep_triton_key.__wrapped__()  # type: ignore[attr-defined]
    assert cache.triton_key() == cache.triton_key()
    return str(cache.triton_key())


def kept(folder: Path) -> Path:
    (path,) = folder.glob(".triton-key-*")
    return path


def test_one_process_hashes_and_later_ones_read(
    monkeypatch: pytest.MonkeyPatch, by_triton: ByTriton, tmp_path: Path
) -> None:
    assert [in_another_process(monkeypatch, by_triton) for _ in range(3)] == [KEY] * 3
    assert by_triton.calls == 1
    assert kept(tmp_path / "cache").stat().st_mode & 0o077 == 0


def test_processes_with_caches_of_their_own_share_a_folder(
    monkeypatch: pytest.MonkeyPatch, by_triton: ByTriton, tmp_path: Path
) -> None:
    monkeypatch.setenv("TPK_CACHE_DIR", str(tmp_path / "shared"))
    for number in range(2):
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / f"cache-{number}"))
        assert in_another_process(monkeypatch, by_triton) == KEY
    assert by_triton.calls == 1
    assert kept(tmp_path / "shared").read_text() == KEY


@pytest.mark.parametrize("content", [b"", b"3.0.0-of another release", b"\xff\xfe"])
def test_a_damaged_file_is_written_again(
    monkeypatch: pytest.MonkeyPatch, by_triton: ByTriton, tmp_path: Path, content: bytes
) -> None:
    in_another_process(monkeypatch, by_triton)
    kept(tmp_path / "cache").write_bytes(content)
    assert in_another_process(monkeypatch, by_triton) == KEY
    assert by_triton.calls == 2
    assert kept(tmp_path / "cache").read_text() == KEY


def test_a_cache_that_cannot_be_written_is_no_error_here(
    monkeypatch: pytest.MonkeyPatch, by_triton: ByTriton, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file in the place of the folder")
    assert [in_another_process(monkeypatch, by_triton) for _ in range(2)] == [KEY] * 2
    assert by_triton.calls == 2


def test_other_files_have_another_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "compiler" / "compiler.py"
    path.parent.mkdir()
    path.write_text("one")
    before, times = _fingerprint(tmp_path), path.stat()
    assert _fingerprint(tmp_path) == before
    # The same size, and the time of the content set back: the inode still tells.
    path.write_text("two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = _fingerprint(tmp_path)
    (tmp_path / "compiler" / "more.py").touch()
    assert len({before, changed, _fingerprint(tmp_path)}) == 3


def test_what_triton_hashes_is_in_the_fingerprint(tmp_path: Path) -> None:
    for folder in ("_C", "backends", "compiler", "language", "runtime"):
        before = _fingerprint(tmp_path)
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").touch()
        assert _fingerprint(tmp_path) != before
