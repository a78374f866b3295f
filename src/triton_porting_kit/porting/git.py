"""What is asked of git: never about another repository than the one that is named."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

IDENTITY = ("-c", "user.name=Triton Porting Kit", "-c", "user.email=tpk@localhost")
"""Of commits that nobody is asked about: where git does not know who the user is, and in temporary repositories."""
_SHARED = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
)


def available() -> bool:
    """Whether there is a git to run."""
    return shutil.which("git") is not None


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, without what leads git to another repository, as it is set while a hook runs."""
    kept = {name: value for name, value in os.environ.items() if name not in _SHARED}
    return {**kept, **(more or {})}


def run(folder: Path, *arguments: str, check: bool = True) -> str:
    """What git prints, run in a folder. Raises `subprocess.CalledProcessError` where it fails and `check` is set."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment(), capture_output=True, text=True, check=check
    )
    return done.stdout


def top(folder: Path) -> Path | None:
    """The folder of the repository that a folder is in, if it is in one."""
    found = run(folder, "rev-parse", "--show-toplevel", check=False).strip()
    return Path(found) if found else None


def knows_user(folder: Path) -> bool:
    """Whether git knows whose commits these would be."""
    return all(run(folder, "config", key, check=False).strip() for key in ("user.name", "user.email"))


def start(folder: Path, message: str, identity: Sequence[str] = IDENTITY) -> None:
    """Make a repository of a folder, with all that is in it as the first commit. No hook and no key is asked."""
    run(folder, "init", "-q", "--template=")
    commit(folder, message, identity)


def commit(folder: Path, message: str, identity: Sequence[str] = IDENTITY) -> None:
    """Commit everything in a folder that holds nothing but what belongs there."""
    run(folder, "add", "--all", "--force", ".")
    quiet = ("-c", f"core.hooksPath={os.devnull}", "-c", "commit.gpgSign=false")
    run(folder, *identity, *quiet, "commit", "-q", "--allow-empty", "-m", message)
