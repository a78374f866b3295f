"""The virtual NPU: where its C API, its library and its chip are. docs/virtual-npu.md says what it is.

It is native code with a C API, as a vendor's runtime would be; a `Device` over it is what a generated backend has.
"""

from __future__ import annotations

from pathlib import Path


def _installed(*parts: str) -> Path:
    """A file that the build has installed. In an editable install it is not where this module is."""
    tried = [Path(folder, *parts) for folder in __path__]
    for path in tried:
        if path.exists():
            return path
    raise FileNotFoundError(
        f"the virtual NPU was not built: no {', no '.join(map(str, tried))}; install the kit again"
    )


def include_directory() -> Path:
    """The folder of ``vnpu.h``. Raises `FileNotFoundError` when the virtual NPU was not built."""
    return _installed("include", "vnpu.h").parent


def library() -> Path:
    """``libvnpu.so.1``, to link or load. Raises `FileNotFoundError` when the virtual NPU was not built."""
    return _installed("lib", "libvnpu.so.1")


def chip() -> Path:
    """The program that is the chip; the library starts it. Raises `FileNotFoundError` when it was not built."""
    return _installed("bin", "vnpu-chip")


def cmake_prefix() -> Path:
    """What ``CMAKE_PREFIX_PATH`` needs for ``find_package(vnpu CONFIG)``, which gives the target ``vnpu::vnpu``.

    Raises `FileNotFoundError` when the virtual NPU was not built.
    """
    return _installed("lib", "cmake", "vnpu", "vnpuConfig.cmake").parents[3]


__all__ = ["chip", "cmake_prefix", "include_directory", "library"]
