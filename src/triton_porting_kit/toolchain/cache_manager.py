"""Repairs of Triton's file cache, for damaged files and for caches that cannot be written.

A cache cannot be written if it is read-only, on a full disk, or under too long a path. Triton passes artefacts from the
compiler to the kernel in files, so it cannot compile without a folder. What the cache does not accept is written to a
folder that lives as long as the process.
"""

from __future__ import annotations

import functools
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

from triton_porting_kit import trust, untrusted
from triton_porting_kit.errors import CacheError, CorruptCacheWarning
from triton_porting_kit.toolchain import compat

_moved: dict[tuple[int, str, str], str] = {}
"""The replacement folders of kernels that the cache did not accept, by process, cache and key."""


@functools.cache
def mend_cache() -> None:
    """Repair Triton's handling of its cache where necessary, before a kernel is looked up there.

    Triton's digest of its own files is kept there, too (`compat.triton_key`).
    """
    _let_unfinished_kernels_go()
    _refuse_damaged_groups()
    _go_on_without()
    compat.keep_triton_key()


def _let_unfinished_kernels_go() -> None:
    """Let kernels be destroyed whose constructor raised: they have no `module`, which their destructor reads."""
    from triton.compiler.compiler import CompiledKernel

    if not hasattr(CompiledKernel, "module"):
        CompiledKernel.module = None


def _refuse_damaged_groups() -> None:
    """Compile a kernel again if its metadata or its list of files is damaged, or a listed file is missing.

    Triton's constructor of a cached kernel reads the metadata before it calls the backend. Releases before 3.8 do not
    check the list of files either.
    """
    from triton.runtime.cache import FileCacheManager

    by_triton = FileCacheManager.get_group

    def get_group(self: Any, filename: str) -> Any:
        try:
            group = by_triton(self, filename)
            if group is None:
                return None
            path = Path(self._make_path(f"__grp__{filename}"))
            listed = untrusted.read_json(path, untrusted.METADATA, ValueError)["child_paths"]
        except (ValueError, TypeError, KeyError):
            return None
        if len(group) != len(listed):
            return None
        metadata = group.get(filename) if filename.endswith(".json") else None
        if metadata is None or _is_metadata(Path(metadata)):
            return group
        warnings.warn(
            f"{metadata} is not the file that was written (damaged or replaced); the kernel is compiled again",
            CorruptCacheWarning,
            stacklevel=2,
        )
        return None

    FileCacheManager.get_group = get_group


def _is_metadata(path: Path) -> bool:
    """Whether a file holds the metadata of a compiled kernel, as far as Triton needs it to create the kernel."""
    try:
        found = untrusted.read_json(path, untrusted.METADATA, ValueError)
        return isinstance(found["hash"], str) and {"backend", "arch", "warp_size"} <= found["target"].keys()
    except (ValueError, TypeError, KeyError, AttributeError):
        return False


def _go_on_without() -> None:
    """Continue in a temporary folder, with a `CacheWarning`, if the cache cannot be written.

    A dump that cannot be written is a `CacheError`.
    """
    from triton.runtime.cache import FileCacheManager

    make, put, put_group = FileCacheManager.__init__, FileCacheManager.put, FileCacheManager.put_group

    def move(self: Any, error: OSError) -> None:
        self.cache_dir = _elsewhere(self.key, Path(self.cache_dir).parent, error)
        self.lock_path = os.path.join(self.cache_dir, "lock")
        compat.forget_cache_folders()

    @functools.wraps(make)
    def __init__(self: Any, key: str, override: bool = False, dump: bool = False) -> None:
        self._is_cache = not (dump or override)
        try:
            make(self, key, override, dump)
        except OSError as error:
            if not self._is_cache:
                raise _not_written(error) from error
            move(self, error)
            return
        known = (os.getpid(), os.path.dirname(self.cache_dir), key)
        if self._is_cache and known in _moved:
            self.cache_dir = _moved[known]

    @functools.wraps(put)
    def put_anywhere(self: Any, data: Any, filename: str, binary: bool = True) -> str:
        try:
            path: str = put(self, data, filename, binary)
        except OSError as error:
            if not self._is_cache or Path(self.cache_dir) in map(Path, _moved.values()):
                raise _not_written(error) from error
            for half in Path(self.cache_dir).glob(f"tmp.pid_{os.getpid()}_*"):
                shutil.rmtree(half, ignore_errors=True)
            move(self, error)
            path = put_anywhere(self, data, filename, binary)
        return path

    @functools.wraps(put_group)
    def put_whole_group(self: Any, filename: str, group: dict[str, str]) -> str:
        # A kernel is made of the files of one folder, whose digests are checked there.
        for _ in range(2):  # twice, in case the list of files itself does not fit
            if Path(self.cache_dir) in map(Path, _moved.values()):
                for name, path in group.items():
                    if Path(path).parent != Path(self.cache_dir):
                        group[name] = self.put(Path(path).read_bytes(), name)
            folder = self.cache_dir
            written: str = put_group(self, filename, group)
            if self.cache_dir == folder:
                break
        return written

    FileCacheManager.__init__, FileCacheManager.put = __init__, put_anywhere
    FileCacheManager.put_group = put_whole_group


def _elsewhere(key: str, cache: Path, error: OSError) -> str:
    folder = trust.temporary_folder(cache, error, "TRITON_CACHE_DIR") / key
    try:
        folder.mkdir(exist_ok=True)
    except OSError as other:
        raise _not_written(other) from error
    _moved[os.getpid(), str(cache), key] = str(folder)
    return str(folder)


def _not_written(error: OSError) -> CacheError:
    return CacheError(
        f"{error.filename or 'a file'} cannot be written: {error.strerror or error}; set the variable that names its "
        "folder (TRITON_CACHE_DIR, TRITON_DUMP_DIR, TMPDIR) to one that you can write, on a disk with room"
    )
