"""Gets the packages of collections: each into a folder of its own, from the index or from a user's checkout."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from triton_porting_kit.conformance.public.entries import Collection
from triton_porting_kit.conformance.public.options import THIS_PYTHON, Options
from triton_porting_kit.errors import PortingKitError

_READY = ".ready"
_SKIP_BUILDS = ("MAMBA_SKIP_CUDA_BUILD", "FLASH_ATTENTION_SKIP_CUDA_BUILD", "CAUSAL_CONV1D_SKIP_CUDA_BUILD")
"""Variables with which set-up scripts describe a package without a CUDA compiler."""


class PackageUnavailable(PortingKitError):
    """A package could not be fetched."""


def ensure(collection: Collection, options: Options) -> list[Path]:
    """Fetch a collection if it is not there. Returns the folders to import it from. Raises `PackageUnavailable`."""
    own = options.checkouts.get(collection.name)
    if own is not None and not own.is_dir():
        raise PackageUnavailable(f"--from {collection.name}={own}: there is no such folder")
    folder = options.cache.expanduser() / f"{collection.name}-{_digest(collection, options.python)}"
    with _alone(folder):
        if not (folder / _READY).is_file():
            _fetch(collection, folder, options.python, with_package=own is None)
            (folder / _READY).touch()
    beside = [_triton(collection.triton, options)] if _needs_triton(collection, options) else []
    if own is not None:
        return [own / collection.folder if (own / collection.folder).is_dir() else own, folder, *beside]
    return [*([folder / collection.folder] if collection.folder else []), folder, *beside]


def _needs_triton(collection: Collection, options: Options) -> bool:
    """Whether a collection needs another release of Triton than the installed one.

    What is fetched for another Python is for another machine, which is to have the release.
    """
    here = options.python == THIS_PYTHON
    return bool(collection.triton) and here and collection.triton != importlib.metadata.version("triton")


def _triton(release: str, options: Options) -> Path:
    """The folder of a release of Triton, which collections share."""
    folder = options.cache.expanduser() / f"triton-{release}-{options.python}"
    with _alone(folder):
        if not (folder / _READY).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            _pip(["install", "--target", str(folder), f"triton=={release}"], f"triton=={release}")
            (folder / _READY).touch()
    return folder


def _digest(collection: Collection, python: str) -> str:
    """Changes with what is installed, so that a new release is not mixed with an old one."""
    about = [
        collection.package,
        collection.version,
        collection.requires,
        collection.source,
        [int(word) for word in python.split(".")],
    ]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:12]


def _fetch(collection: Collection, folder: Path, python: str, *, with_package: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    package = f"{collection.package}=={collection.version}"
    wheels = [*collection.requires, *([package] if with_package and not collection.source else [])]
    if wheels:
        other = [] if python == THIS_PYTHON else ["--python-version", python, "--only-binary", ":all:"]
        _pip(["install", "--target", str(folder), *other, *wheels], package)
    if with_package and collection.source:
        with tempfile.TemporaryDirectory() as scratch:
            _pip(
                ["download", "--no-binary", ":all:", "--no-build-isolation", "-d", scratch, package], package
            )
            for archive in Path(scratch).glob("*.tar.gz"):
                with tarfile.open(archive) as opened:
                    opened.extractall(folder, filter="data")


def _pip(arguments: list[str], package: str) -> None:
    """Run pip without dependencies: torch and Triton are those of the running environment."""
    import os

    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments, "--no-deps"]
    environment = {**os.environ, **dict.fromkeys(_SKIP_BUILDS, "TRUE")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise PackageUnavailable(
            f"{package} could not be fetched by pip: {' '.join(lines[-3:])}. Name a checkout with "
            "--from NAME=DIR, or leave the collection out with --only"
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time fetches a package."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
