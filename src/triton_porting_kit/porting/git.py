"""Running git on the repository of a given folder, whatever the environment says."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

IDENTITY = ("-c", "user.name=Triton Porting Kit", "-c", "user.email=tpk@localhost")
"""The author of commits if git does not know the user, and in temporary repositories."""
_SHARED = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
)


def available() -> bool:
    """Whether git is installed."""
    return shutil.which("git") is not None


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of this process without variables that redirect git to another repository, as git's hooks have
    them."""
    kept = {name: value for name, value in os.environ.items() if name not in _SHARED}
    return {**kept, **(more or {})}


def run(folder: Path, *arguments: str, check: bool = True) -> str:
    """The output of git, run in a folder. Raises `subprocess.CalledProcessError` if it fails and `check` is set."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment(), capture_output=True, text=True, check=check
    )
    return done.stdout


def top(folder: Path) -> Path | None:
    """The top folder of the repository that contains a folder; None if there is none."""
    found = run(folder, "rev-parse", "--show-toplevel", check=False).strip()
    return Path(found) if found else None


def knows_user(folder: Path) -> bool:
    """Whether git knows the user's name and address for commits."""
    return all(run(folder, "config", key, check=False).strip() for key in ("user.name", "user.email"))


def start(folder: Path, message: str, identity: Sequence[str] = IDENTITY) -> None:
    """Make a folder a repository, and commit all its files. Hooks do not run, and the commit is not signed."""
    run(folder, "init", "-q", "--template=")
    commit(folder, message, identity)


def commit(folder: Path, message: str, identity: Sequence[str] = IDENTITY) -> None:
    """Commit all files of a folder, including ignored ones."""
    run(folder, "add", "--all", "--force", ".")
    quiet = ("-c", f"core.hooksPath={os.devnull}", "-c", "commit.gpgSign=false")
    run(folder, *identity, *quiet, "commit", "-q", "--allow-empty", "-m", message)
