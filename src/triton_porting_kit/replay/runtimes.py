"""`ReplayRuntime`: the C++ code with which a replay program calls a vendor's runtime."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import ClassVar

from triton_porting_kit.errors import CaptureError
from triton_porting_kit.replay.capture import Capture
from triton_porting_kit.replay.manifest import Manifest


class ReplayRuntime:
    """A runtime's C or C++ interface, for `triton_porting_kit.replay.emit_cpp`. A vendor derives from it.

    The attributes without a value below are C++ statements in the body of ``main``, in the order in which they run.
    They are Jinja templates; the docstring of each lists its variables in ``{{ }}``. A statement that fails must end
    the program with status 1 and a message on standard error. Names that begin with ``buffer_``, ``before_`` and
    ``after_`` are reserved for the program, and so are ``arguments``, ``options``, ``run``, ``same`` and the namespace
    ``replay``.

    A driver names its runtime in `TritonDriver.replay_runtime`: ``package.module:ClassName``.
    """

    name: ClassVar[str]
    """The name in messages and comments."""
    address_type: ClassVar[str] = "std::uint64_t"
    """The integer type of device addresses."""
    includes: ClassVar[Sequence[str]] = ()
    """Headers as written after ``#include``: ``<vnpu.h>``."""
    declarations: ClassVar[str] = ""
    """Declarations before ``main``, such as a function that checks the result of a call."""
    cmake: ClassVar[str] = ""
    """Lines of CMakeLists.txt that find the runtime: ``find_package(vnpu CONFIG REQUIRED)``."""
    libraries: ClassVar[Sequence[str]] = ()
    """The libraries that the program is linked with, by their CMake names: ``vnpu::vnpu``."""

    open: ClassVar[str]
    """Open the device."""
    load: ClassVar[str]
    """Load ``{{ file }}`` of ``{{ size }}`` bytes, and find the function ``{{ kernel }}``, an identifier. The file's
    content is ``options.read("{{ file }}", {{ size }})``, its path ``options.path("{{ file }}")``."""
    allocate: ClassVar[str]
    """Allocate ``{{ size }}`` bytes at a multiple of ``{{ alignment }}`` and assign the address to the variable
    ``{{ address }}``, which is declared."""
    copy_in: ClassVar[str]
    """Copy the vector ``{{ host }}`` of ``{{ size }}`` bytes, which is not empty, to ``{{ address }}``."""
    launch: ClassVar[str]
    """Launch the kernel on a grid of ``{{ x }}``, ``{{ y }}``, ``{{ z }}`` with the argument block at
    ``{{ arguments }}``, of ``{{ size }}`` bytes."""
    wait: ClassVar[str]
    """Wait until all work has ended, and check that it succeeded."""
    copy_out: ClassVar[str]
    """Copy ``{{ address }}`` to the vector ``{{ host }}`` of ``{{ size }}`` bytes, which is not empty."""
    free: ClassVar[str]
    """Free ``{{ address }}``."""
    close: ClassVar[str]
    """Close the device."""

    def binary(self, capture: Capture) -> tuple[str, bytes]:
        """The name and the content of the file that `load` reads; by default the recorded binary."""
        return capture.manifest.kernel.binary.file, capture.binary

    def sources(self, capture: Capture) -> dict[str, bytes]:
        """Additional files of the program by path. Files that end in ``.cpp`` are compiled."""
        return {}

    def prefix(self) -> str:
        """The value of ``CMAKE_PREFIX_PATH``; empty if CMake finds the packages without it."""
        return ""

    def check(self, capture: Capture) -> None:
        """Raise `CaptureError` for a launch that this runtime cannot replay."""


BUILT_IN = {
    "host": "triton_porting_kit.replay.host_runtime:HostRuntime",
    "vnpu": "triton_porting_kit.replay.vnpu_runtime:VnpuRuntime",
}
"""The kit's own runtimes, by the names that drivers use."""


def runtime_of(manifest: Manifest) -> ReplayRuntime:
    """The runtime of a launch: one of the kit's, or the one of the installed backend that the launch was recorded on.

    Nothing is imported by a name that only the manifest gives. Raises `CaptureError` if there is no runtime.
    """
    if not manifest.runtime or manifest.runtime in BUILT_IN:
        return find_runtime(manifest.runtime)
    from triton.backends import backends

    installed = backends.get(manifest.backend)
    name = str(getattr(installed.driver, "replay_runtime", "")) if installed else ""
    if name != manifest.runtime:
        raise CaptureError(
            f"the launch was recorded with the runtime {manifest.runtime!r}, which no installed backend "
            f"{manifest.backend!r} names; tpk does not import code that only a recorded launch names: name the runtime "
            "with --runtime if you trust it"
        )
    return find_runtime(name)


def find_runtime(name: str) -> ReplayRuntime:
    """The runtime that a user or an installed driver names. Raises `CaptureError` if there is no such runtime."""
    if not name:
        raise CaptureError(
            "the driver of this launch does not name a runtime for C++ programs (`replay_runtime`); name one "
            f"with --runtime: {', '.join(BUILT_IN)}, or MODULE:NAME of a triton_porting_kit.replay.ReplayRuntime"
        )
    module, colon, attribute = BUILT_IN.get(name, name).partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute) if colon else None
    except (ImportError, AttributeError) as error:
        raise CaptureError(f"the runtime {name!r} cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, ReplayRuntime)):
        raise CaptureError(
            f"{name!r} is not a runtime: name {', '.join(BUILT_IN)}, or MODULE:NAME of a class that derives from "
            "triton_porting_kit.replay.ReplayRuntime"
        )
    return found()
