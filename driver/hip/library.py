"""Finds HIP's runtime library at run time, never when the kit is built."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from triton_porting_kit.driver.hip import _hip
from triton_porting_kit.errors import DeviceLost, PortingKitError, ToolchainError

NAME = "libamdhip64.so"
VARIABLES = ("TPK_HIP_LIBRARY", "TRITON_LIBHIP_PATH")
"""Environment variables that name the file. If one is set, nothing else is searched. The second is Triton's."""

_SONAMES = (f"{NAME}.7", f"{NAME}.6", NAME)
_GPU_FILES = ("/dev/kfd", "/dev/dxg")
"""Files that show the presence of AMD GPUs, on Linux and under WSL."""

REMEDY = (
    f"install ROCm or torch for ROCm, or set {VARIABLES[0]} to the path of {NAME}; only running kernels on AMD's "
    "GPUs needs it: compiling for them does not"
)


@dataclass(frozen=True)
class Place:
    """One place that was searched."""

    origin: str
    """Why this place was searched, such as the name of an environment variable."""
    path: str
    """The file that was looked for, or the reason why there was none."""
    found: bool


@dataclass(frozen=True)
class LibrarySearch:
    """The places that were searched, in order. The last one is where the library was found, if it was."""

    places: tuple[Place, ...]

    @property
    def path(self) -> str | None:
        """The library's file, or its name for the dynamic loader; None if not found."""
        return self.places[-1].path if self.places and self.places[-1].found else None

    def report(self) -> str:
        """The search as text."""
        looked = "; ".join(f"{place.origin}: {place.path}" for place in self.places if not place.found)
        if self.path is None:
            return f"HIP's runtime library was not found. Looked at: {looked}"
        return f"{self.path}, found by: {self.places[-1].origin}"


def find_library() -> LibrarySearch:
    """Search for HIP's runtime library.

    The order is: the environment variables `VARIABLES`, libraries loaded in this process, torch's, ROCm's by
    ``ROCM_PATH`` and ``HIP_PATH``, its Python packages, ``/opt/rocm``, the dynamic loader's path. torch is not
    imported. Only the last step opens a library.
    """
    places: list[Place] = []
    for place in _named() or _places():
        places.append(place)
        if place.found:
            break
    return LibrarySearch(tuple(places))


def open_library() -> _hip.Library:
    """The library, opened once per process. Raises `ToolchainError` with all places that were searched."""
    search = find_library()
    if search.path is None:
        raise ToolchainError(f"{search.report()}. What to do: {REMEDY}")
    try:
        return _open(search.path)
    except ToolchainError as error:
        raise ToolchainError(
            f"{error} (found by: {search.places[-1].origin}). What to do: {REMEDY}"
        ) from None


def device_count() -> int:
    """The number of devices that HIP sees; 0 without the library, or if the machine shows no AMD GPU.

    It is cheap if there is none. In a forked process, where HIP does not work, it returns the parent's number.
    """
    if not _named() and not any(map(os.path.exists, _GPU_FILES)):
        return 0
    path = find_library().path
    if path is None:
        return 0
    try:
        _counts[path] = _open(path).device_count()
    except DeviceLost:
        pass
    except PortingKitError:
        return 0
    return _counts.get(path, 0)


_counts: dict[str, int] = {}
_open = cache(_hip.Library)


# --- places, in order --------------------------------------------------------------------------------


def _named() -> list[Place]:
    for variable in VARIABLES:
        if path := os.environ.get(variable):
            return [Place(variable, path, os.path.isfile(path))]
    return []


def _places() -> Iterator[Place]:
    yield from (Place(variable, "not set", False) for variable in VARIABLES)
    yield _loaded()
    yield from _of_package("torch", "torch", "lib")
    for variable in ("ROCM_PATH", "HIP_PATH"):
        if root := os.environ.get(variable):
            yield _in_folder(variable, Path(root, "lib"))
        else:
            yield Place(variable, "not set", False)
    yield from _of_package("the package rocm_sdk", "_rocm_sdk_core", "lib")
    yield _in_folder("ROCm's usual folder", Path("/opt/rocm/lib"))
    yield _of_loader()


def _loaded() -> Place:
    """The library that is already loaded in this process: two copies could not share anything."""
    origin = "loaded in this process"
    try:
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    except OSError as error:
        return Place(origin, str(error), False)
    for line in lines:
        path = line.partition("/")
        if path[1] and Path(path[2]).name.startswith(NAME) and os.path.isfile(f"/{path[2]}"):
            return Place(origin, f"/{path[2]}", True)
    return Place(origin, f"no {NAME}", False)


def _of_package(origin: str, package: str, folder: str) -> Iterator[Place]:
    """A package's library; the package is not imported."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):  # ValueError if a test or a stub has inserted a module by hand
        spec = None
    roots = list(spec.submodule_search_locations or ()) if spec else []
    if not roots:
        yield Place(origin, "not installed", False)
    for root in roots:
        place = _in_folder(origin, Path(root, folder))
        yield place
        if place.found:
            return


def _in_folder(origin: str, folder: Path) -> Place:
    """The library in a folder; the latest version if none has a plain name."""
    plain = folder / NAME
    versions = sorted(folder.glob(f"{NAME}.*"), key=_version, reverse=True)
    for path in (plain, *versions):
        if path.is_file():
            return Place(origin, str(path), True)
    return Place(origin, str(plain), False)


def _version(path: Path) -> tuple[int, ...]:
    numbers = path.name.removeprefix(f"{NAME}.").split(".")
    return tuple(int(number) if number.isdecimal() else -1 for number in numbers)


def _of_loader() -> Place:
    """The library that the dynamic loader finds by name: ``LD_LIBRARY_PATH`` and its configured folders."""
    origin = "the dynamic loader's path"
    for name in _SONAMES:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return Place(origin, name, True)
    return Place(origin, " ".join(_SONAMES), False)


def shares_with_torch() -> bool:
    """Whether torch for ROCm is in use in this process. torch is not imported to find out."""
    torch = sys.modules.get("torch")
    if torch is None or not getattr(getattr(torch, "version", None), "hip", None):
        return False
    cuda = getattr(torch, "cuda", None)
    return bool(cuda is not None and cuda.is_initialized())
