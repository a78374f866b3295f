"""Building and installing the kit, and environments to install it in, from which nothing is downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GROUP = pytest.mark.xdist_group("packaging")
"""For tests that need the wheel: one process builds it, once."""
_IGNORED = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "__pycache__", "*.so", ".*_cache", ".hypothesis"
)


def run(command: Sequence[str | Path], cwd: Path = Path(sys.prefix), **environment: str) -> str:
    """Standard output of a command that must succeed. By default it runs outside the source tree."""
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(*arguments: str | Path, python: Path | None = None) -> None:
    """Run pip for `python`, with this environment's CMake and Ninja: the builds share a folder."""
    target = ["--python", python] if python else []
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run(
        [sys.executable, "-m", "pip", "-q", *target, *arguments], PIP_DISABLE_PIP_VERSION_CHECK="1", PATH=path
    )


def environment(folder: Path) -> Path:
    """A fresh virtual environment that sees this one's libraries behind its own; returns its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    own = next((folder / "lib").glob("python*")) / "site-packages"
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (own / "libraries.pth").write_text("\n".join(libraries))
    return python


def copy_sources(folder: Path) -> Path:
    """A copy of the source tree, whose build folder all builds share."""
    shutil.copytree(ROOT, folder, ignore=_IGNORED, symlinks=True)
    return folder


def build_wheel(sources: Path, folder: Path) -> Path:
    """The kit's wheel."""
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", folder, sources)
    (path,) = folder.iterdir()
    return path


def can_mount() -> bool:
    """Whether file systems can be mounted for a process alone: as root, where containers do not forbid it."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(command, check=False, capture_output=True).returncode
    )
