"""Who else could write, or swap, files that are executed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from triton_porting_kit.errors import InsecureCacheError
from triton_porting_kit.trust import check_private, check_way, group_can_write, write_private


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
    with pytest.raises(InsecureCacheError, match=f"{mode:04o} lets others write it; do this"):
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
    with pytest.raises(InsecureCacheError, match=f"link .*belongs to user {user}; do this"):
        check_way(link / "cache", "do this")


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
