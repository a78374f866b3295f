"""Wheel, plain and editable installation: all hold the same modules, and work in a fresh environment.

The environments are layered over the one that runs the tests, so that nothing is downloaded.
"""

from __future__ import annotations

import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from installing import GROUP, environment, pip, run
from packages import EXTENSIONS, modules, source_files

from triton_porting_kit.porting.template import Template

pytestmark = GROUP


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


def test_sdist_holds_the_template(sources: Path, tmp_path: Path) -> None:
    """What begins with a dot, too: .github of the template, not that of the kit."""
    script = f"import os; os.chdir({str(sources)!r})\n"
    script += f"from scikit_build_core.build import build_sdist; build_sdist({str(tmp_path)!r})"
    run([sys.executable, "-c", script])
    (path,) = tmp_path.iterdir()
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2]: member for name, member in _members(archive)}
    files = {f"backend_template/{name}": executable for name, _, executable in Template.own().files()}
    assert files.keys() <= held.keys()
    assert {name for name in files if held[name].mode & 0o100} == {name for name in files if files[name]}
    assert not [name for name in held if name.startswith((".github", "build/"))]


def _members(archive: tarfile.TarFile) -> list[tuple[str, tarfile.TarInfo]]:
    return [(member.name, member) for member in archive if member.isfile()]


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

    template = "from triton_porting_kit.porting.template import Template\nprint(*((n, e) for n, _, e in Template.own().files()))"
    assert run([python, "-c", template]).strip() == " ".join(
        str((n, e)) for n, _, e in Template.own().files()
    )
