"""The virtual NPU as C and CMake see it: the documented program, the header, what the library exports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import pytest

from triton_porting_kit.driver import virtual

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "virtual-npu.md").read_text()
HEADER = (ROOT / "driver" / "virtual" / "include" / "vnpu.h").read_text()


def block(language: str) -> str:
    """The one fenced block of the page in a language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def run(command: list[str | Path], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_documented_program_runs(tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text(block("python"))
    run([sys.executable, "scale.py"], tmp_path, TRITON_DEFAULT_BACKEND="cpu", TRITON_CACHE_DIR=str(tmp_path))
    (tmp_path / "run_scale.c").write_text(block("c"))
    (tmp_path / "CMakeLists.txt").write_text(block("cmake"))
    cmake = pytest.importorskip("cmake").CMAKE_BIN_DIR + "/cmake"
    run([cmake, "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={virtual.cmake_prefix()}"], tmp_path)
    run([cmake, "--build", "build"], tmp_path)
    program = tmp_path / "build" / "run_scale"
    assert run([program], tmp_path) == "2.5 2497.5, 16 programs\n"
    refused = subprocess.run([program], cwd=tmp_path / "build", capture_output=True, text=True)
    assert "VNPU_INVALID_MODULE: vnpu_module_load: the binary is not in ELF format" in refused.stderr


def test_scikit_build_finds_the_package() -> None:
    (entry,) = (point for point in entry_points(group="cmake.prefix") if point.name == "vnpu")
    place = files(entry.load())
    prefixes = [Path(str(path)) for path in getattr(place, "_paths", [place])]
    assert virtual.cmake_prefix() in prefixes


@pytest.mark.parametrize("compiler", [["cc", "-std=c99", "-x", "c"], ["c++", "-std=c++11", "-x", "c++"]])
def test_the_header_is_plain(compiler: list[str], tmp_path: Path) -> None:
    (tmp_path / "use.c").write_text(
        "#include <vnpu.h>\nvnpu_status (*opens)(const vnpu_config *, vnpu_device **) = vnpu_open;\n"
    )
    options = [
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "-fsyntax-only",
        f"-I{virtual.include_directory()}",
    ]
    run([*compiler, *options, "use.c"], tmp_path)


def test_the_library_exports_the_header_and_nothing_else() -> None:
    declared = set(re.findall(r"\b(vnpu_\w+)\(", HEADER))
    listing = run(["nm", "-D", "--defined-only", virtual.library()], ROOT)
    exported = {line.split()[2].partition("@")[0] for line in listing.splitlines()}
    assert exported - {"VNPU_1"} == declared
    assert "SONAME" in (names := run(["readelf", "-d", virtual.library()], ROOT))
    assert "[libvnpu.so.1]" in names


def test_every_setting_and_fault_is_described() -> None:
    for variable in re.findall(r"/\* (VNPU_[A-Z_]+)[,:]", HEADER):
        assert f"`{variable}`" in PAGE, variable
    for fault in re.findall(r"^ \*   ([a-z-]+:n\S*)", HEADER, re.MULTILINE):
        assert f"`{fault}`" in PAGE, fault


def test_checksums(tmp_path: Path) -> None:
    source = Path(__file__).with_name("checksum_test.cpp")
    include = ROOT / "driver" / "virtual" / "native" / "shared"
    run(["c++", "-std=c++20", "-O2", f"-I{include}", "-o", "checksum", source], tmp_path)
    run(["./checksum"], tmp_path)
