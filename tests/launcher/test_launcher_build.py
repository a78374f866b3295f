"""Building and caching launch code: once, privately, and only what was built is loaded."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from installing import can_mount

from triton_porting_kit.errors import CacheError, CacheWarning, InsecureCacheError, LauncherBuildError
from triton_porting_kit.launcher.build import BuildOptions, Shared, _loaded, build_module, find_compiler
from triton_porting_kit.launcher.cache import cache_folder

SOURCE = """\
#include <Python.h>
static PyModuleDef_Slot slots[] = {{0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tiny", "", 0, {}, slots, {}, {}, {}};
PyMODINIT_FUNC PyInit_tiny() { return PyModuleDef_Init(&definition); }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tpk-launchers"


@pytest.fixture
def counting_compiler(tmp_path: Path) -> tuple[Path, Path]:
    """A compiler that writes a line to a log for each compilation."""
    log, script = tmp_path / "log", tmp_path / "compiler"
    log.write_text("")
    compiler = find_compiler()[0]
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] || echo x >> {log}\nexec {compiler} "$@"\n')
    script.chmod(0o700)
    return script, log


def entry_of(folder: Path) -> Path:
    [entry] = [path for path in folder.iterdir() if path.is_dir()]
    return entry


def test_is_built_once_into_a_private_folder(folder: Path, counting_compiler: tuple[Path, Path]) -> None:
    script, log = counting_compiler
    options = BuildOptions(compiler=(str(script),))
    first = build_module(SOURCE, "tiny", options)
    assert build_module(SOURCE, "tiny", options) is first
    _loaded.clear()  # as another process would
    build_module(SOURCE, "tiny", options)
    assert log.read_text() == "x\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(path.name for path in entry_of(folder).iterdir()) == [
        *("launcher.cpp", "launcher.so", "launcher.so.sha256")
    ]
    build_module(SOURCE + "// changed\n", "tiny", options)
    build_module(SOURCE, "tiny", BuildOptions(compiler=(str(script),), compile_flags=("-O1",)))
    assert log.read_text() == "x\n" * 3


def test_what_sources_share_is_built_once(folder: Path, counting_compiler: tuple[Path, Path]) -> None:
    script, log = counting_compiler
    options = BuildOptions(compiler=(str(script),))
    shared = Shared(SOURCE, "APART")

    def build(number: int) -> None:
        source = f"int own_{number};\n#ifndef APART\n{shared.source}#endif\n"
        build_module(source, "tiny", options, shared=shared)

    build(1)
    build(2)
    assert log.read_text() == "x\n" * 3
    (kept,) = folder.glob("*/support.o")
    kept.write_bytes(b"damaged")
    with pytest.warns(RuntimeWarning, match="support.o is not what was built"):
        build(3)
    assert log.read_text() == "x\n" * 5
    build(3)
    build_module(f"int own_4;\n{SOURCE}", "tiny", options)  # nothing shared
    assert log.read_text() == "x\n" * 6


@pytest.mark.parametrize("damage", ["library", "digest", "missing library", "missing digest", "truncated"])
def test_a_damaged_entry_is_built_again(folder: Path, damage: str) -> None:
    build_module(SOURCE, "tiny")
    _loaded.clear()
    entry = entry_of(folder)
    library, digest = entry / "launcher.so", entry / "launcher.so.sha256"
    content = library.read_bytes()
    if damage in ("library", "truncated"):
        library.unlink()  # this process runs the old file, which must not change under it
    if damage == "library":
        library.write_bytes(content[:-1] + b"!")
    elif damage == "digest":
        digest.write_bytes(b"\xff\xfe")
    elif damage == "truncated":
        library.write_bytes(b"")
    else:
        (library if damage == "missing library" else digest).unlink()
    with pytest.warns(RuntimeWarning, match="building it again"):
        build_module(SOURCE, "tiny")
    _loaded.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_module(SOURCE, "tiny")


def test_threads_and_processes_build_once(folder: Path, counting_compiler: tuple[Path, Path]) -> None:
    script, log = counting_compiler
    program = (
        "import sys; from triton_porting_kit.launcher.build import *\n"
        f"build_module(sys.stdin.read(), 'tiny', BuildOptions(compiler=({str(script)!r},)))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, text=True) for _ in range(2)
    ]
    threads = [
        threading.Thread(target=build_module, args=(SOURCE, "tiny", BuildOptions(compiler=(str(script),))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for process in processes:
        process.communicate(SOURCE)
    for thread in threads:
        thread.join()
    assert [process.returncode for process in processes] == [0, 0]
    assert log.read_text() == "x\n"


def test_a_failing_compiler_shows_its_command_and_output(folder: Path) -> None:
    with pytest.raises(LauncherBuildError) as caught:
        build_module("#error no such luck\n", "tiny")
    assert "no such luck" in str(caught.value)
    assert "-std=c++17" in str(caught.value)
    assert not [path for path in folder.iterdir() if path.is_dir()]


def test_a_module_that_does_not_load(folder: Path) -> None:
    with pytest.raises(LauncherBuildError, match="does not load"):
        build_module("int x;\n", "tiny")


def test_a_missing_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(LauncherBuildError, match="no C\\+\\+ compiler"):
        build_module(SOURCE, "tiny")
    monkeypatch.setenv("CXX", "no-such-compiler -O1")
    with pytest.raises(LauncherBuildError, match="no-such-compiler"):
        build_module(SOURCE, "tiny")


def test_cxx_may_have_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", f"{find_compiler()[0]} -DSOMETHING='a b'")
    assert find_compiler()[1:] == ("-DSOMETHING=a b",)
    build_module(SOURCE, "tiny")
    monkeypatch.setenv("CXX", 'g++ "x')
    with pytest.raises(LauncherBuildError, match="CXX is 'g\\+\\+ \"x', which cannot be split"):
        find_compiler()


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_write_is_refused(folder: Path, mode: int) -> None:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    with pytest.raises(InsecureCacheError, match=f"{mode:04o}"):
        build_module(SOURCE, "tiny")


def test_a_folder_below_one_that_anyone_writes_is_refused(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o777)
    with pytest.raises(InsecureCacheError, match="any user can replace"):
        cache_folder()
    folder.parent.chmod(0o1777)  # as /tmp: others cannot rename what is not theirs
    assert cache_folder() == folder


def test_a_link_in_the_place_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InsecureCacheError, match="symbolic link"):
        cache_folder()


def test_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True, mode=0o700)
    user = os.geteuid() or 4711
    os.chown(folder, user, -1)  # root's folders are trusted by everyone
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(InsecureCacheError, match=f"belongs to user {user}"):
        cache_folder()


def test_a_module_that_others_write_is_refused(folder: Path) -> None:
    build_module(SOURCE, "tiny")
    (entry_of(folder) / "launcher.so").chmod(0o722)
    with pytest.raises(InsecureCacheError, match="0722"):
        build_module(SOURCE, "tiny")


def test_a_folder_above_that_is_someone_elses_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir(parents=True, mode=0o700)
    user = os.geteuid() or 4711
    if os.geteuid() == 0:
        os.chown(folder.parent, user, -1)
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(InsecureCacheError, match=f"belongs to user {user}"):
        build_module(SOURCE, "tiny")


def test_too_long_a_path_is_gone_on_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPK_CACHE_DIR", str(tmp_path / ("x" * 300)))
    with pytest.warns(CacheWarning, match="cannot be written: File name too long.*set TPK_CACHE_DIR"):
        module = build_module(SOURCE, "tiny")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert build_module(SOURCE, "tiny") is module


def test_a_full_disk_is_gone_on_without(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler fails there, and what it says is no fault of the source."""
    real = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        if "-o" in command and str(folder) in command[command.index("-o") + 1]:
            return subprocess.CompletedProcess(command, 1, "", "No space left on device")
        return real(command, **options)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(LauncherBuildError, match="No space left"):
        build_module(SOURCE, "tiny")  # there is room: it is the compiler's own trouble
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.warns(CacheWarning, match=f"{folder} cannot be written: No space left on device"):
        build_module(SOURCE, "tiny")


def test_where_a_temporary_folder_is_full_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with (
        pytest.warns(CacheWarning),
        pytest.raises(
            CacheError, match=r"tpk-launchers cannot be written either: No space left .* or TMPDIR"
        ),
    ):
        build_module(f"{SOURCE}// that nobody has built\n", "tiny")


IN_A_MOUNT = """
import subprocess, sys, warnings
sys.path[:0] = sys.argv[3:]
import test_launcher_build as tests
from triton_porting_kit.errors import CacheWarning
mount = lambda options: subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", sys.argv[1]], check=True)
mount(sys.argv[2].removeprefix("filled,"))
if "filled" in sys.argv[2]:
    warnings.simplefilter("error")
    tests.build_module(tests.SOURCE, "tiny")
    mount("remount,ro")
    tests._loaded.clear()
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as told:
    tests.build_module(tests.SOURCE, "tiny")
print(*[warning.category.__name__ for warning in told])
"""


@pytest.mark.skipif(not can_mount(), reason="file systems cannot be mounted here")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("ro", "CacheWarning"),
        ("size=4k", "CacheWarning"),
        ("nr_inodes=4", "CacheWarning"),
        ("filled,size=9m", ""),
    ],
)
def test_real_file_systems(tmp_path: Path, options: str, told: str) -> None:
    """A read-only one that holds the module is good enough."""
    done = subprocess.run(
        [
            "unshare",
            "-m",
            sys.executable,
            "-c",
            IN_A_MOUNT,
            str(tmp_path),
            options,
            *sys.path,
        ],
        env={**os.environ, "TPK_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, told), done.stderr


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TPK_CACHE_DIR", "TRITON_CACHE_DIR", "TRITON_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.triton/cache/tpk-launchers"
    monkeypatch.setenv("TRITON_HOME", str(tmp_path / "triton"))
    assert cache_folder() == tmp_path / "triton/.triton/cache/tpk-launchers"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache/tpk-launchers"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TPK_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(FileExistsError):
        cache_folder()
