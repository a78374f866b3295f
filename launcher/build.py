"""Builds generated launch code with the system's C++ compiler, once per source, into a private cache.

A cache entry is a folder named after everything that the result depends on. It holds the extension module and the
module's SHA-256. It is created by one rename, so a reader sees all of it or nothing, and a lock lets one process build
while the others wait. A module whose content has changed since it was built is not loaded.

Most of a module's code is the same for all signatures, and reading Python's headers for it takes longer than everything
else. It is compiled once, to an object file in an entry of its own, and linked with each module.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from triton_porting_kit import trust, untrusted
from triton_porting_kit.errors import CacheError, LauncherBuildError
from triton_porting_kit.launcher.cache import NAME, cache_folder, cache_path, check_private, locked

_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
_TIMEOUT_SECONDS = 300
_LIBRARY = "launcher.so"
_OBJECT = "support.o"
_DIGEST = ".sha256"
_ROOM = 4 << 20
"""Bytes: an upper bound of the size of a module and its parts."""


@dataclass(frozen=True)
class BuildOptions:
    """How to build.

    `compiler` is a command (default ``$CXX``, else the first of c++, g++, clang++ on PATH). `compile_flags` come before
    the source (``-I...``), `link_flags` after it (``-L...``, ``-l...``).
    """

    compiler: tuple[str, ...] | None = None
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()


def find_compiler() -> tuple[str, ...]:
    """The C++ compiler's command. Raises `LauncherBuildError` if there is none, or CXX is no command."""
    named = os.environ.get("CXX", "")
    try:
        command = shlex.split(named)
    except ValueError as error:
        raise LauncherBuildError(
            f"CXX is {named!r}, which cannot be split into arguments ({str(error).lower()}): quote it as for a shell"
        ) from None
    if command:
        if shutil.which(command[0]) is None:
            raise LauncherBuildError(f"the compiler that CXX names, {shlex.join(command)}, was not found")
        return tuple(command)
    for name in ("c++", "g++", "clang++"):
        if path := shutil.which(name):
            return (path,)
    raise LauncherBuildError(
        "no C++ compiler: CXX is not set and none of c++, g++, clang++ is on PATH; "
        "install one, or use PackedLauncher, which needs none"
    )


@dataclass(frozen=True)
class Shared:
    """Code at the end of many sources. With the macro `apart` defined, it is left out and linked instead."""

    source: str
    apart: str


def build_module(
    source: str, name: str, options: BuildOptions | None = None, *, shared: Shared | None = None
) -> ModuleType:
    """The extension module `name` built from the C++ `source`, or loaded from the cache.

    `shared` is the part that the source has in common with others; it is compiled once for all of them.

    Raises `LauncherBuildError` with the command and its output, `InsecureCacheError` for a cache folder that others can
    write. Warns and rebuilds a damaged module. If the cache cannot be written, the module is built in a temporary
    folder, with a `CacheWarning`; raises `CacheError` if that cannot be written either.
    """
    options = options or BuildOptions()
    command = options.compiler or find_compiler()
    try:
        return _build(cache_folder(), source, name, options, command, shared)
    except OSError as error:
        folder = trust.temporary_folder(cache_path(), error, "TPK_CACHE_DIR") / NAME
        try:
            folder.mkdir(exist_ok=True, mode=0o700)
            return _build(folder, source, name, options, command, shared)
        except OSError as other:
            raise CacheError(
                f"{folder} cannot be written either: {other.strerror or other}; set TPK_CACHE_DIR or TMPDIR to a "
                "folder that you can write, on a disk with room"
            ) from other


def _build(
    folder: Path,
    source: str,
    name: str,
    options: BuildOptions,
    command: tuple[str, ...],
    shared: Shared | None,
) -> ModuleType:
    """Raises `OSError` if the folder cannot be written and the module is not there."""
    compiler = (*command, *_FLAGS, f"-I{sysconfig.get_path('include')}", *options.compile_flags)
    made_with = (*compiler, _compiler_version(command), _python_abi())
    key = _digest("\0".join((source, name, *made_with, *options.link_flags)).encode())
    entry = folder / key
    if _intact(entry, _LIBRARY, quiet=True):  # a read-only folder is enough
        return _load(entry / _LIBRARY, name)
    with locked(folder / f"{key}.lock"):
        if not _intact(entry, _LIBRARY):
            objects: tuple[str, ...] = ()
            if shared is not None:
                compiler = (*compiler, f"-D{shared.apart}")
                objects = (str(_object(shared.source, folder, compiler, made_with)),)
            _make(source, entry, _LIBRARY, (*compiler, "-shared"), (*objects, *options.link_flags))
        return _load(entry / _LIBRARY, name)


def _object(source: str, folder: Path, compiler: tuple[str, ...], made_with: tuple[str, ...]) -> Path:
    key = _digest("\0".join((source, *made_with)).encode())
    with locked(folder / f"{key}.lock"):
        entry = folder / key
        if not _intact(entry, _OBJECT):
            _make(source, entry, _OBJECT, (*compiler, "-c"), ())
    return entry / _OBJECT


def _make(source: str, entry: Path, product: str, compiler: tuple[str, ...], behind: tuple[str, ...]) -> None:
    """Create a cache entry: the source, the compiler's output, and its digest."""
    with tempfile.TemporaryDirectory(dir=entry.parent, prefix=entry.name[:16] + ".tmp-") as scratch_name:
        scratch = Path(scratch_name)
        new_entry = scratch / "entry"
        new_entry.mkdir(mode=0o700)
        text, made = (new_entry / product).with_suffix(".cpp"), new_entry / product
        text.write_text(source)
        try:
            _run([*compiler, str(text), "-o", str(made), *behind])
        except LauncherBuildError:
            _check_room(scratch)
            raise
        made.chmod(0o700)
        digest = new_entry / (product + _DIGEST)
        digest.write_text(_digest(made.read_bytes()))
        digest.chmod(0o600)
        if entry.exists():
            os.rename(entry, scratch / "damaged")
        os.rename(new_entry, entry)


def _check_room(folder: Path) -> None:
    """Raises `OSError` if the disk has no room for the compiler's output."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_ROOM))


def _run(argv: list[str]) -> None:
    try:
        result = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LauncherBuildError(
            f"the compiler did not run: {error}\n  command: {shlex.join(argv)}"
        ) from error
    if result.returncode != 0:
        raise LauncherBuildError(
            f"the compiler failed with status {result.returncode}\n"
            f"  command: {shlex.join(argv)}\n{result.stderr or result.stdout}"
        )


def _intact(entry: Path, product: str, *, quiet: bool = False) -> bool:
    library, digest = entry / product, entry / (product + _DIGEST)
    if not entry.exists():
        return False
    for path in (entry, library, digest):
        if path.exists():
            check_private(path)
    try:
        built = untrusted.read_text(digest, len(_digest(b"")), LauncherBuildError)
        if built == _digest(untrusted.read_bytes(library, untrusted.ARTEFACT, LauncherBuildError)):
            return True
    except LauncherBuildError:
        pass
    if quiet:
        return False
    warnings.warn(
        f"the cached launcher {library} is not what was built (damaged or changed); building it again",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


_loaded: dict[Path, ModuleType] = {}
_loading = threading.Lock()


def _load(library: Path, name: str) -> ModuleType:
    with _loading:
        if library not in _loaded:
            loader = importlib.machinery.ExtensionFileLoader(name, str(library))
            spec = importlib.util.spec_from_file_location(name, library, loader=loader)
            assert spec is not None
            try:
                module = importlib.util.module_from_spec(spec)
                loader.exec_module(module)
            except ImportError as error:
                raise LauncherBuildError(f"the built launcher {library} does not load: {error}") from error
            _loaded[library] = module
        return _loaded[library]


@functools.cache
def _compiler_version(command: tuple[str, ...]) -> str:
    try:
        result = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LauncherBuildError(f"the compiler {shlex.join(command)} did not run: {error}") from error
    if result.returncode != 0:
        raise LauncherBuildError(
            f"{shlex.join([*command, '--version'])} failed with status {result.returncode}\n{result.stderr}"
        )
    return result.stdout


def _python_abi() -> str:
    return f"{sys.implementation.cache_tag} {sysconfig.get_config_var('SOABI')} {sys.version}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
