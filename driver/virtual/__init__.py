"""The virtual NPU: the paths of its C API, its library and its chip. docs/virtual-npu.md describes it.

It is native code with a C API, like a vendor's runtime. Generated backends have a `Device` on top of it.
"""

from __future__ import annotations

from pathlib import Path


def _installed(*parts: str) -> Path:
    """A file that the build has installed. In an editable install, it is not in this module's folder."""
    tried = [Path(folder, *parts) for folder in __path__]
    for path in tried:
        if path.exists():
            return path
    raise FileNotFoundError(
        f"the virtual NPU was not built: no {', no '.join(map(str, tried))}; install the kit again"
    )


def include_directory() -> Path:
    """The folder of ``vnpu.h``. Raises `FileNotFoundError` if the virtual NPU was not built."""
    return _installed("include", "vnpu.h").parent


def library() -> Path:
    """``libvnpu.so.1``, to link or load. Raises `FileNotFoundError` if the virtual NPU was not built."""
    return _installed("lib", "libvnpu.so.1")


def chip() -> Path:
    """The program that is the chip; the library starts it. Raises `FileNotFoundError` if it was not built."""
    return _installed("bin", "vnpu-chip")


def cmake_prefix() -> Path:
    """The value of ``CMAKE_PREFIX_PATH`` for ``find_package(vnpu CONFIG)``, which defines the target ``vnpu::vnpu``.

    Raises `FileNotFoundError` if the virtual NPU was not built.
    """
    return _installed("lib", "cmake", "vnpu", "vnpuConfig.cmake").parents[3]


__all__ = ["chip", "cmake_prefix", "include_directory", "library"]
