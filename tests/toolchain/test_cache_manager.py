"""Triton's file cache where it cannot be written: the artefacts of a kernel are in one folder all the same."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from installing import can_mount

from triton_porting_kit.errors import CacheError, CacheWarning
from triton_porting_kit.toolchain import cache_manager, compat

KEY = "ab" * 32


@pytest.fixture(autouse=True)
def mended() -> Iterator[None]:
    cache_manager.mend_cache()
    yield
    cache_manager._moved.clear()
    compat.forget_cache_folders()


def compiled() -> dict[str, str]:
    """What Triton's compiler does with a cache."""
    from triton.runtime.cache import get_cache_manager

    manager = get_cache_manager(KEY)
    assert manager.get_group("k.json") is None
    group = {name: manager.put(f"content of {name}", name) for name in ("k.source", "k.ttir")}
    group["k.obj"] = manager.put(b"\x7fELF" * 5000, "k.obj")
    group["k.json"] = manager.put(
        '{"hash": "ab", "target": {"backend": "", "arch": 0, "warp_size": 1}}', "k.json"
    )
    manager.put_group("k.json", group)
    return group


def check(group: dict[str, str]) -> Path:
    """The folder of the artefacts, which are whole."""
    (folder,) = {Path(path).parent for path in group.values()}
    assert Path(group["k.source"]).read_text() == "content of k.source"
    assert Path(group["k.ttir"]).read_text() == "content of k.ttir"
    assert Path(group["k.obj"]).read_bytes() == b"\x7fELF" * 5000
    assert compat.kernel_cache_folder(KEY) == folder
    from triton.runtime.cache import get_cache_manager

    found: Any = get_cache_manager(KEY).get_group("k.json")
    assert found == group
    return folder


def test_too_long_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / ("x" * 300)))
    with pytest.warns(CacheWarning, match="File name too long.*set TRITON_CACHE_DIR") as told:
        folder = check(compiled())
    assert len(told) == 1
    assert tmp_path not in folder.parents


@pytest.mark.parametrize("room", range(6))
def test_a_disk_that_is_full_after_some_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """The failure comes from the operating system's own call, as of a file system with room for so many files."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    by_system, left = os.replace, [room]

    def replace(source: Any, target: Any, **named: Any) -> None:
        if str(target).startswith(str(cache)):
            if left[0] == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
            left[0] -= 1
        by_system(source, target, **named)

    monkeypatch.setattr(os, "replace", replace)
    if room == 5:
        assert cache in check(compiled()).parents
        return
    with pytest.warns(CacheWarning, match=f"{cache} cannot be written: No space left on device") as told:
        assert cache not in check(compiled()).parents
    assert len(told) == 1
    assert not list(cache.rglob("tmp.pid_*"))


MOUNT = """
import os, subprocess, sys
from pathlib import Path
subprocess.run(["mount", "-t", "tmpfs", "-o", sys.argv[2], "tmpfs", sys.argv[1]], check=True)
sys.path[:0] = sys.argv[3:]
import warnings
warnings.simplefilter("ignore")
import test_cache_manager as tests
from triton_porting_kit.toolchain import cache_manager
cache_manager.mend_cache()
folder = tests.check(tests.compiled())
print(Path(sys.argv[1]) in folder.parents)
"""


@pytest.mark.skipif(not can_mount(), reason="file systems cannot be mounted here")
@pytest.mark.parametrize(
    ("options", "kept"), [("size=1m", True), ("size=16k", False), ("nr_inodes=1", False), ("ro", False)]
)
def test_real_file_systems(tmp_path: Path, options: str, kept: bool) -> None:
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", MOUNT, str(tmp_path), options, *sys.path],
        env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(kept)), done.stderr


def test_a_dump_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.cache import get_dump_manager

    (tmp_path / "file").touch()
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "file"))
    with pytest.raises(CacheError, match=r"Not a directory; set the variable .*TRITON_DUMP_DIR"):
        get_dump_manager(KEY)


def test_where_a_temporary_folder_is_full_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def full(source: Any, target: Any, **_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr(os, "replace", full)
    with (
        pytest.warns(CacheWarning),
        pytest.raises(CacheError, match=r"No space left on device; set the variable .*TMPDIR"),
    ):
        compiled()
