"""Wheel, plain and editable installation: all hold the same modules, and work in a fresh environment.

The environments are layered over the one that runs the tests, so that nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from packages import EXTENSIONS, ROOT, modules, source_files

pytestmark = pytest.mark.xdist_group("packaging")  # one process builds, once

_IGNORED = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "__pycache__", "*.so", ".*_cache", ".hypothesis"
)


def run(command: Sequence[str | Path], **environment: str) -> str:
    """Standard output of a command that must succeed. It runs outside the source tree."""
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        cwd=Path(sys.prefix),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree, whose build folder all builds share."""
    copy = tmp_path_factory.mktemp("packaging") / "sources"
    shutil.copytree(ROOT, copy, ignore=_IGNORED)
    return copy


def pip(*arguments: str | Path, python: Path | None = None) -> None:
    """Run pip for `python`, with this environment's CMake and Ninja: the builds share a folder."""
    target = ["--python", python] if python else []
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run(
        [sys.executable, "-m", "pip", "-q", *target, *arguments], PIP_DISABLE_PIP_VERSION_CHECK="1", PATH=path
    )


@pytest.fixture(scope="session")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", folder, sources)
    (path,) = folder.iterdir()
    return path


def environment(folder: Path) -> Path:
    """A fresh virtual environment that sees this one's libraries behind its own; returns its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    own = next((folder / "lib").glob("python*")) / "site-packages"
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (own / "libraries.pth").write_text("\n".join(libraries))
    return python


def test_wheel_holds_the_source_tree(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packages = ("triton_porting_kit", "triton_porting_kit_pytest")
    held = {name for name in names if name.startswith(tuple(f"{package}/" for package in packages))}
    extensions = {name for name in held if name.endswith(".so")}
    assert {name.partition(".")[0] for name in extensions} == set(EXTENSIONS)
    assert source_files() <= held
    runtime = ("include/vnpu.h", "lib/libvnpu.so.1", "lib/cmake/vnpu/vnpuConfig.cmake", "bin/vnpu-chip")
    assert {f"triton_porting_kit/driver/virtual/{name}" for name in runtime} <= held
    assert {name for name in held if name.endswith((".py", ".pyi"))} <= source_files()
    beside = {name.partition("/")[0] for name in names} - set(packages)
    assert [name.endswith(".dist-info") for name in beside] == [True]


@pytest.mark.parametrize("kind", ["wheel", "plain", "editable"])
def test_installation(kind: str, wheel: Path, sources: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "fresh")
    what = {"wheel": [wheel], "plain": ["--no-build-isolation", sources]}
    what["editable"] = ["--no-build-isolation", "-e", sources]
    pip("install", "--no-deps", "--ignore-installed", *what[kind], python=python)

    script = f"""
import importlib.util, json, triton
backend = triton.backends.backends["cpu"]
origins = {{name: importlib.util.find_spec(name).origin for name in {modules()!r}}}
print(json.dumps([importlib.import_module(backend.driver.__module__).__file__, origins]))
"""
    driver, origins = json.loads(run([python, "-c", script]))
    home = (sources if kind == "editable" else tmp_path / "fresh").resolve()
    for origin in (driver, *origins.values()):
        own = Path(origin).resolve().is_relative_to(home)
        # An editable installation has its extension modules beside its metadata.
        assert own or (kind == "editable" and origin.endswith(".so")), origin

    opens = """
import ctypes
from triton_porting_kit.driver import virtual
print(ctypes.CDLL(str(virtual.library())).vnpu_open(None, ctypes.byref(ctypes.c_void_p())))
"""
    assert run([python, "-c", opens]) == "0\n"

    version = run([tmp_path / "fresh" / "bin" / "tpk", "--version"])
    assert version.startswith("tpk ")
    run([python, "-m", "triton_porting_kit.cli.tiny_kernel"])
