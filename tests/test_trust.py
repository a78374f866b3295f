"""Who else could write, or swap, files that are executed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from triton_porting_kit.errors import CacheError, CacheWarning, InsecureCacheError
from triton_porting_kit.trust import (
    check_private,
    check_way,
    group_can_write,
    temporary_folder,
    write_private,
)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500])
def test_private(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    check_private(tmp_path, "do this")
    check_way(tmp_path, "do this")
    check_private(tmp_path / "not there", "do this")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_others_write(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(InsecureCacheError, match=f"{mode:04o} lets others write to it; do this"):
        check_private(tmp_path, "do this")


def test_a_group_may_be_let_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    check_private(tmp_path, "do this", group_may_write=True)
    tmp_path.chmod(0o700)
    assert not group_can_write(tmp_path)


def test_someone_elses_link_anywhere_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    (real / "cache").mkdir(parents=True)
    link.symlink_to(real)
    check_way(link / "cache", "do this")
    user = os.geteuid() or 4711
    if os.geteuid() == 0:
        os.chown(link, user, -1, follow_symlinks=False)
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(InsecureCacheError, match=f"belongs to user {user}"):
        check_way(link / "cache", "do this")


AS_ANOTHER_USER = """
import os, sys
from pathlib import Path
from triton_porting_kit.errors import InsecureCacheError
from triton_porting_kit.trust import check_way
os.setgid(65534)
os.setuid(65534)
try:
    check_way(Path(sys.argv[1]), "do this")
except InsecureCacheError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be others")
@pytest.mark.parametrize(
    ("owner", "mode", "refused"),
    [
        (0, 0o755, ""),
        (65534, 0o755, ""),
        (4711, 0o755, "open above it belongs to user 4711, who can replace it; do this"),
        (0, 0o1777, ""),
        (4711, 0o1777, "open above it belongs to user 4711, who can replace it; do this"),
        (0, 0o777, "has mode 0777; do this"),
    ],
)
def test_the_owner_of_a_folder_above(owner: int, mode: int, refused: str) -> None:
    """In a process of a user that is not root, with folders that are really others'."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        folder = Path(place, "open", "cache")
        folder.mkdir(parents=True)
        os.chmod(place, 0o755)
        os.chown(folder, 65534, 65534)
        os.chown(folder.parent, owner, owner)
        folder.parent.chmod(mode)
        done = subprocess.run(
            [sys.executable, "-c", AS_ANOTHER_USER, str(folder)], capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().endswith(refused)
    assert bool(done.stdout) == bool(refused)


def test_the_owner_of_a_folder_above_by_any_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "above" / "cache").mkdir(parents=True)
    user = os.geteuid() or 4711
    if os.geteuid() == 0:
        os.chown(tmp_path / "above", user, -1)
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(InsecureCacheError, match=f"belongs to user {user}, who can replace it; do this"):
        check_way(tmp_path / "above" / "cache", "do this")


def test_what_cannot_be_reached_is_nothing_to_refuse(tmp_path: Path) -> None:
    check_way(tmp_path / ("x" * 300) / "cache", "do this")
    (tmp_path / "file").touch()
    check_way(tmp_path / "file" / "cache", "do this")


def test_a_temporary_folder_in_the_place_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(errno.EROFS, os.strerror(errno.EROFS))
    with pytest.warns(CacheWarning) as told:
        found = temporary_folder(tmp_path, error, "MY_DIR")
    (warning,) = told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert temporary_folder(tmp_path, error, "MY_DIR") == found
    assert str(warning.message).startswith(
        f"compiled code is not kept: {tmp_path} cannot be written: Read-only file system. This process"
    )
    assert "set MY_DIR" in str(warning.message)
    assert found.stat().st_mode & 0o777 == 0o700

    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    monkeypatch.setattr(os, "getpid", lambda: -1)  # another process, which has none yet
    with pytest.raises(
        CacheError, match=r"nor can a temporary folder: .*No space left on device; set MY_DIR"
    ):
        temporary_folder(tmp_path, error, "MY_DIR")


def test_the_temporary_folder_goes_with_its_process() -> None:
    script = """
import errno
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from triton_porting_kit.trust import temporary_folder
found = temporary_folder(Path("/nowhere"), OSError(30, "Read-only"), "X")
if os.fork() == 0:
    raise SystemExit  # a child takes nothing away
os.wait()
assert found.is_dir()
print(found)
"""
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).exists()


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    check_way(tmp_path / "a", "do this")


def test_a_linked_folder_below_one_that_everyone_writes(tmp_path: Path) -> None:
    (tmp_path / "open" / "cache").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "open" / "cache")
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(InsecureCacheError, match="any user can replace"):
        check_way(tmp_path / "link", "do this")


def test_write_private(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    write_private(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(TypeError):
        write_private(path, "text")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == ["file"]
    assert path.read_bytes() == b"new"
