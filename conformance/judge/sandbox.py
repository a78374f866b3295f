"""The sandbox of a candidate's process, as far as Linux supports one without privileges.

With Landlock, if the kernel has it, the process can access only Python's files, libraries and its own folder. It cannot
use TCP, signal other processes or access their memory. Resource limits always apply.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import struct
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

_NO_NEW_PRIVS, _SET_DUMPABLE, _SET_PDEATHSIG = 38, 4, 1
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE, _READ_FILE, _READ_DIR, _IOCTL = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_ONLY = _EXECUTE | _WRITE | _READ_FILE | 1 << 14 | _IOCTL
_TCP = 0b11
_SCOPED = 0b11
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/etc", "/bin", "/sbin", "/opt", "/proc", "/sys/devices", "/sys/bus", "/sys/class",
    "/sys/fs/cgroup", "/sys/kernel/mm", "/sys/module",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/shm", "/dev/dri", "/dev/kfd")
FILE_BYTES = 4 << 30
"""The size of the largest file that a candidate may write, in bytes."""


def landlock_version() -> int:
    """The version of Landlock, or 0 if the kernel does not have it."""
    return max(_syscall(_CREATE, None, 0, 1), 0)


def readable_folders() -> list[Path]:
    """The folders of Python and its libraries, including the kit's own."""
    found = {Path(place) for place in sysconfig.get_paths().values()}
    found |= {Path(place) for place in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    found |= {Path(place) for place in sys.path if Path(place).name in ("site-packages", "dist-packages")}
    for module in sys.modules.copy().values():  # backends may be installed anywhere
        places = vars(module).get("__path__") if hasattr(module, "__dict__") else None
        found |= {Path(place) for place in places if isinstance(place, str)} if places else set()
    # A checkout installed in editable mode contains more than libraries; allow only its packages.
    for place in [place for place in found if (place / "pyproject.toml").is_file()]:
        found.discard(place)
        found |= {package.parent for package in place.glob("*/__init__.py")}
    # Packages in such a checkout may be links out of the folder that holds them.
    packages = [place for place in found if (place / "__init__.py").is_file()]
    found |= {link for place in packages for link in place.iterdir() if link.is_symlink()}
    return sorted(place.resolve() for place in found if place.is_dir())


def protect_judge() -> None:
    """Prevent other processes of this user from accessing this process's memory, if the kernel supports it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def enter(work: Path) -> str:
    """Restrict this process to reading libraries and writing `work`. Returns a description of the restrictions."""
    libc = ctypes.CDLL(None)
    libc.prctl(_SET_PDEATHSIG, 9, 0, 0, 0)
    for limit, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILE_BYTES)):
        hard = resource.getrlimit(limit)[1]
        with contextlib.suppress(OSError, ValueError):
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (most, most))
    libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    version = landlock_version()
    if not version:
        return "process, limits"
    writable = [work, *(Path(place) for place in _DEVICES)]
    writable += sorted(Path("/dev").glob("nvidia*"))
    ruleset = _ruleset(version)
    for place in (*readable_folders(), *(Path(place) for place in _SYSTEM)):
        _allow(ruleset, place, _READ)
    for place in writable:
        _allow(ruleset, place, _everything(version))
    if _syscall(_RESTRICT, ruleset, 0) != 0:
        return "process, limits"
    os.close(ruleset)
    parts = ["files"] + ["tcp"] * (version >= 4) + ["signals"] * (version >= 6)
    return f"process, limits, landlock {version} ({', '.join(parts)})"


def can_read(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a sandboxed candidate could read a file."""
    resolved = path.resolve()
    places = [*folders, *(Path(place) for place in _SYSTEM)]
    return any(place == resolved or place in resolved.parents for place in places)


def _everything(version: int) -> int:
    """All file access rights that this version of Landlock defines."""
    bits = 13 + (version >= 2) + (version >= 3) + (version >= 5)
    return int((1 << bits) - 1)


def _ruleset(version: int) -> int:
    attributes = struct.pack(
        "<QQQ", _everything(version), _TCP if version >= 4 else 0, _SCOPED if version >= 6 else 0
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    return _syscall(_CREATE, attributes[:size], size, 0)


def _allow(ruleset: int, place: Path, rights: int) -> None:
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not place.is_dir():
            rights &= _FILE_ONLY
        rights &= _everything(landlock_version())
        _syscall(_ADD, ruleset, 1, struct.pack("<Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _syscall(number: int, *arguments: object) -> int:
    if sys.platform != "linux":
        return -1
    libc = ctypes.CDLL(None, use_errno=True)
    converted = [
        ctypes.c_char_p(a)
        if isinstance(a, bytes)
        else ctypes.c_void_p(None)
        if a is None
        else ctypes.c_long(a)  # type: ignore[arg-type]
        for a in arguments
    ]
    return int(libc.syscall(ctypes.c_long(number), *converted))
