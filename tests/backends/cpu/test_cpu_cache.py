"""The compile cache: hits, keys, damage, and folders that others can write."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cpu_kernels import add_constant
from cpu_scripts import Script
from triton import knobs

from triton_porting_kit.errors import CorruptCacheError, CorruptCacheWarning, InsecureCacheError

Array = Callable[..., Any]

RUN = """
x = array([0.0] * 40)
add_constant[(2,)](x, 37, AMOUNT=1, BLOCK=32)
assert (x.numpy() == [1.0] * 37 + [0.0] * 3).all()
"""
COUNT_STAGES = """
hits = []
triton.knobs.compilation.listener = lambda **seen: hits.append(seen["cache_hit"])
"""


def launch(array: Array, **options: Any) -> None:
    x = array([0.0] * 40)
    add_constant.device_caches.clear()
    add_constant[(2,)](x, 37, AMOUNT=1, BLOCK=32, **options)
    assert (x.numpy() == [1.0] * 37 + [0.0] * 3).all()


def file(cache: Path, stage: str) -> Path:
    (path,) = cache.rglob(f"add_constant.{stage}")
    return path


# --- hits and keys -----------------------------------------------------------------------------------


def test_a_second_process_runs_no_stage(script: Script) -> None:
    source = COUNT_STAGES + RUN + "print(hits)"
    assert script(source).strip() == "[False]"
    # Not only does Triton call it a hit: the stages' modules are never imported.
    loaded = (
        "import sys; late = ('triton_porting_kit.compiler.loops', 'triton_porting_kit.toolchain.mlir.ir'); "
        "print([m for m in sys.modules if m.startswith(late) or m.endswith('._mlir_libs')])"
    )
    assert script(source + "\n" + loaded).splitlines() == ["[True]", "[]"]


def folders(cache: Path) -> int:
    return len([path for path in cache.iterdir() if path.is_dir()])


def test_what_code_depends_on_is_in_the_key(
    array: Array, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from triton.runtime import driver

    launch(array)
    features = driver.active.get_current_target()
    assert features.backend == "cpu"
    launch(array)
    assert folders(cache) == 1
    launch(array, enable_fp_fusion=False)
    assert folders(cache) == 2
    launch(array, cpu_features="+sse2")
    assert folders(cache) == 3
    launch(array, num_warps=8)
    assert folders(cache) == 4
    from triton_porting_kit.backends.cpu import compiler

    monkeypatch.setattr(compiler, "__version__", "0.0.0+test")
    launch(array)
    assert folders(cache) == 5


def test_fp_fusion_setting_is_in_the_key(array: Array, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch(array)
    monkeypatch.setattr(knobs.language, "default_fp_fusion", False)
    launch(array)
    assert folders(cache) == 2


# --- damage ------------------------------------------------------------------------------------------


def foreign_object(data: bytes) -> bytes:
    """The same object, said to be for another machine."""
    return data[:18] + struct.pack("<H", 243) + data[20:]


DAMAGE = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "one byte short": lambda data: data[:-1],
    "random": lambda data: random.Random(len(data)).randbytes(len(data)),
    "foreign": foreign_object,
    "flipped": lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
}
FEW = ("truncated", "foreign")
"""Those that a new process meets here; the others are left to `make test-all`."""


@pytest.mark.parametrize("stage", ["obj", "llir", "loops", "structured", "ttir"])
@pytest.mark.parametrize("damage", list(DAMAGE))
def test_a_damaged_artefact_is_made_again(damage: str, stage: str, array: Array, cache: Path) -> None:
    launch(array)
    path = file(cache, stage)
    good = path.read_bytes()
    path.write_bytes(DAMAGE[damage](good))
    with pytest.warns(CorruptCacheWarning, match=f"add_constant.{stage} is not the file that was compiled"):
        launch(array)
    assert path.read_bytes() == good
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(array)


@pytest.mark.parametrize(
    "damage", [d if d in FEW else pytest.param(d, marks=pytest.mark.slow) for d in DAMAGE]
)
def test_a_new_process_survives_a_damaged_object(damage: str, script: Script, cache: Path) -> None:
    script(RUN)
    path = file(cache, "obj")
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    result = script.run(RUN)
    assert result.returncode == 0, result.stderr
    assert "CorruptCacheWarning" in result.stderr
    result = script.run(RUN)
    assert result.returncode == 0
    assert "CorruptCacheWarning" not in result.stderr


def test_everything_after_the_source_is_made_again(array: Array, cache: Path) -> None:
    launch(array)
    stages = ("ttir", "structured", "loops", "llir", "obj")
    good = {stage: file(cache, stage).read_bytes() for stage in stages}
    for stage in stages:
        file(cache, stage).write_bytes(b"")
    with pytest.warns(CorruptCacheWarning):
        launch(array)
    assert {stage: file(cache, stage).read_bytes() for stage in stages} == good


def test_nothing_to_make_it_from(array: Array, cache: Path) -> None:
    launch(array)
    for stage in ("source", "ttir", "structured", "loops", "llir", "obj"):
        file(cache, stage).write_bytes(b"")
    with pytest.raises(CorruptCacheError, match="delete the folder") as error:
        launch(array)
    shutil.rmtree(str(error.value).rpartition("delete the folder ")[2])
    launch(array)


def test_artefacts_of_another_process_beside_an_intact_binary(array: Array, cache: Path) -> None:
    """As two processes leave them that compile the same text from two paths at once."""
    launch(array)
    for stage in ("source", "ttir", "structured", "loops"):
        path = file(cache, stage)
        path.write_text(f"// from elsewhere\n{path.read_text()}")
    with pytest.warns(CorruptCacheWarning, match="the binary is intact, and is used"):
        launch(array)


def test_a_damaged_override_is_not_replaced_by_the_compilers(
    array: Array, cache: Path, tmp_path: Path
) -> None:
    launch(array)
    override = tmp_path / "mine.llir"
    override.write_text(file(cache, "llir").read_text())
    shutil.rmtree(cache)
    cache.mkdir()
    launch(array, ir_override=str(override))
    file(cache, "obj").write_bytes(b"")
    with pytest.warns(CorruptCacheWarning):  # from the user's llir
        launch(array, ir_override=str(override))
    file(cache, "llir").write_bytes(b"")
    with pytest.raises(CorruptCacheError):
        launch(array, ir_override=str(override))


METADATA_DAMAGE = {
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "random": lambda data: random.Random(len(data)).randbytes(len(data)),
    "not of a kernel": lambda data: b'{"target": null}',
    "without a target": lambda data: json.dumps(
        {name: value for name, value in json.loads(data).items() if name != "target"}
    ).encode(),
    "a list": lambda data: b"[]",
}


@pytest.mark.parametrize("damage", list(METADATA_DAMAGE))
def test_a_kernel_with_damaged_metadata_is_compiled_again(damage: str, array: Array, cache: Path) -> None:
    launch(array)
    path = file(cache, "json")
    good = json.loads(path.read_bytes())
    path.write_bytes(METADATA_DAMAGE[damage](path.read_bytes()))
    with pytest.warns(CorruptCacheWarning, match=r"add_constant\.json is not the file that was written"):
        launch(array)
    assert json.loads(path.read_bytes()) == good
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(array)


def test_a_missing_file_is_compiled_again(array: Array, cache: Path) -> None:
    launch(array)
    file(cache, "obj").unlink()
    launch(array)
    assert file(cache, "obj").exists()


# --- trust -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled_before", [True, False])
def test_a_cache_that_everyone_writes_is_refused(compiled_before: bool, array: Array, cache: Path) -> None:
    if compiled_before:
        launch(array)
    cache.chmod(0o777)
    with pytest.raises(InsecureCacheError, match="0777"):
        launch(array)
    cache.chmod(0o700)
    launch(array)


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_everyone_writes_in_the_cache_is_refused(what: str, array: Array, cache: Path) -> None:
    launch(array)
    path = file(cache, "obj")
    (path.parent if what == "folder" else path).chmod(0o777)
    with pytest.raises(InsecureCacheError, match="0777"):
        launch(array)


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a path another user's, or this process another user's."""
    user = os.geteuid() or 4711
    os.chown(path, user, -1, follow_symlinks=False)
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)


@pytest.mark.parametrize("what", ["cache", "folder", "file"])
def test_what_belongs_to_another_user_is_refused(
    what: str, array: Array, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch(array)
    path = file(cache, "obj")
    give_away({"cache": cache, "folder": path.parent, "file": path}[what], monkeypatch)
    with pytest.raises(InsecureCacheError, match="belongs to user"):
        launch(array)


def test_links(array: Array, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "link"
    link.symlink_to(cache)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(link))
    launch(array)  # one's own link is fine
    path = file(cache, "obj")
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(InsecureCacheError, match="symbolic link"):
        launch(array)
    path.unlink()
    elsewhere.rename(path)
    cache.chmod(0o777)
    with pytest.raises(InsecureCacheError, match="0777"):
        launch(array)
    cache.chmod(0o700)
    give_away(link, monkeypatch)
    with pytest.raises(InsecureCacheError, match="belongs to user"):
        launch(array)


def test_a_folder_above_that_is_someone_elses(
    array: Array, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch(array)
    give_away(cache.parent, monkeypatch)
    if os.stat(cache).st_uid:
        monkeypatch.setattr(os, "geteuid", lambda: os.stat(cache).st_uid + 1)
    with pytest.raises(InsecureCacheError, match="belongs to user"):
        launch(array)


def test_folders_above(array: Array, cache: Path) -> None:
    cache.parent.chmod(0o777)
    with pytest.raises(InsecureCacheError, match="any user can replace"):
        launch(array)
    cache.parent.chmod(0o1777)  # as /tmp
    launch(array)


def test_a_group_that_writes_is_warned_of(array: Array, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton_porting_kit import trust

    cache.chmod(0o770)
    launch(array)  # a group of one's own is nobody else
    monkeypatch.setattr(trust.grp, "getgrgid", lambda gid: type("G", (), {"gr_name": "all", "gr_mem": []}))
    with pytest.warns(UserWarning, match="written by its group"):
        launch(array)


def test_files_are_made_private(array: Array, cache: Path) -> None:
    old = os.umask(0)
    try:
        with pytest.raises(InsecureCacheError, match="chmod"):
            launch(array)
    finally:
        os.umask(old)


BOUND_BY_MODES = """
import ctypes, os
if os.geteuid() == 0:  # root without the capabilities that let it pass over file modes
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.capget(header, sets) == 0
    sets[0] &= ~0b110
    assert libc.capset(header, sets) == 0
"""


def bound_by_modes(script: Script, source: str) -> subprocess.CompletedProcess[str]:
    """Run a script that may write only where file modes say so, whoever runs it."""
    return script.run(source, before=BOUND_BY_MODES)


def test_a_read_only_cache(script: Script, cache: Path) -> None:
    cache.chmod(0o555)
    result = bound_by_modes(script, RUN + RUN)
    assert result.returncode == 0, result.stderr
    assert (
        f"CacheWarning: compiled code is not kept: {cache} cannot be written: Permission denied"
        in result.stderr
    )
    assert result.stderr.count("CacheWarning") == 1
    assert not list(cache.iterdir())
    # One that holds the kernel is good enough.
    cache.chmod(0o755)
    script(RUN)
    for path in (cache, *cache.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    result = bound_by_modes(script, RUN)
    assert result.returncode == 0, result.stderr
    # What is damaged cannot be mended there.
    path = file(cache, "obj")
    path.chmod(0o644)
    path.write_bytes(b"")
    path.chmod(0o444)
    result = bound_by_modes(script, RUN)
    assert result.returncode == 1
    assert "CorruptCacheError" in result.stderr
    assert "cannot be replaced" in result.stderr


def test_too_long_a_path(script: Script, tmp_path: Path) -> None:
    result = script.run(RUN, TRITON_CACHE_DIR=str(tmp_path / ("x" * 300)))
    assert result.returncode == 0, result.stderr
    assert "cannot be written: File name too long" in result.stderr
    assert "set TRITON_CACHE_DIR to a folder that you can write" in result.stderr


def test_what_went_to_a_temporary_folder_is_checked_there(script: Script, tmp_path: Path) -> None:
    damage = """
import glob, tempfile, warnings
from triton_porting_kit.errors import CorruptCacheWarning
(path,) = glob.glob(tempfile.gettempdir() + "/triton-not-kept-*/*/add_constant.obj")
open(path, "wb").write(b"x")
add_constant.device_caches.clear()
warnings.simplefilter("error", CorruptCacheWarning)
try:
    add_constant[(2,)](x, 37, AMOUNT=1, BLOCK=32)
except CorruptCacheWarning as told:
    print("noticed")
"""
    (tmp_path / "tmp").mkdir()
    blocked = str(tmp_path / ("x" * 300))
    assert script(RUN + damage, TRITON_CACHE_DIR=blocked, TMPDIR=str(tmp_path / "tmp")).strip() == "noticed"


# --- at once -----------------------------------------------------------------------------------------


def test_processes_compile_into_one_cache_at_once(script: Script, cache: Path) -> None:
    processes = [
        subprocess.Popen(
            script.command(RUN), env=script.environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(4)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
        assert b"Corrupt" not in errors
    result = script.run(COUNT_STAGES + RUN + "assert hits == [True]")
    assert result.returncode == 0, result.stderr
    assert "Corrupt" not in result.stderr
    assert not [path for path in cache.rglob("*") if "tmp" in path.name]


def test_metadata_holds_the_digests(array: Array, cache: Path) -> None:
    launch(array)
    metadata = json.loads(file(cache, "json").read_text())
    assert list(metadata["artefact_digests"]) == ["source", "ttir", "structured", "loops", "llir", "obj"]
    assert metadata["overridden_stages"] == []
    assert metadata["shared"] == 0


def test_a_remote_cache(array: Array, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.cache import RemoteCacheBackend, RemoteCacheManager

    stored: dict[str, bytes] = {}

    class Memory(RemoteCacheBackend):
        def __init__(self, key: str) -> None:
            self.key = key

        def get(self, filenames: Any) -> dict[str, bytes]:
            return {name: stored[self.key + name] for name in filenames if self.key + name in stored}

        def put(self, filename: str, data: bytes) -> None:
            stored[self.key + filename] = data

    monkeypatch.setattr(knobs.cache, "manager_class", RemoteCacheManager)
    monkeypatch.setattr(knobs.cache, "remote_manager_class", Memory)
    launch(array)
    shutil.rmtree(cache)
    cache.mkdir()
    hits: list[bool] = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **seen: hits.append(seen["cache_hit"]))
    launch(array)
    assert hits == [True]
    # What comes damaged over the wire is mended here too.
    (name,) = (name for name in stored if name.endswith("add_constant.obj"))
    stored[name] = b""
    with pytest.warns(CorruptCacheWarning):
        launch(array)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_read(kind: str, array: Array, cache: Path) -> None:
    launch(array)
    path = file(cache, "obj")
    path.unlink()
    if kind == "folder":
        path.mkdir(0o700)
        with pytest.raises(CorruptCacheError, match="cannot be replaced"):
            launch(array)
    else:
        os.mkfifo(path, 0o600)
        with pytest.warns(CorruptCacheWarning, match="it was made again"):
            launch(array)
        assert path.is_file()
