"""`ReplayRuntime`: how a program that replays a launch calls a vendor's runtime, as pieces of C++."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import ClassVar

from triton_porting_kit.errors import CaptureError
from triton_porting_kit.replay.capture import Capture
from triton_porting_kit.replay.manifest import Manifest


class ReplayRuntime:
    """A runtime's C or C++ interface, for `triton_porting_kit.replay.emit_cpp`. A vendor derives from it.

    The attributes without a value below are statements of C++ in the body of ``main``, in the order in which they run
    there. They are Jinja templates: each sees the names that its text says, in ``{{ }}``. A statement that fails ends
    the program with status 1 and a message on standard error. Names that begin with ``buffer_``, ``before_`` and
    ``after_`` are the program's, and so are ``arguments``, ``options``, ``run``, ``same`` and the namespace ``replay``.

    A driver names its runtime in `TritonDriver.replay_runtime`: ``package.module:ClassName``.
    """

    name: ClassVar[str]
    """For people and for messages."""
    address_type: ClassVar[str] = "std::uint64_t"
    """The integer type of device addresses."""
    includes: ClassVar[Sequence[str]] = ()
    """Headers, as they stand behind ``#include``: ``<vnpu.h>``."""
    declarations: ClassVar[str] = ""
    """What stands in front of ``main``: a function that checks what a call returns, for instance."""
    cmake: ClassVar[str] = ""
    """Lines of CMakeLists.txt that find the runtime: ``find_package(vnpu CONFIG REQUIRED)``."""
    libraries: ClassVar[Sequence[str]] = ()
    """What the program is linked with, as CMake names it: ``vnpu::vnpu``."""

    open: ClassVar[str]
    """Open the device."""
    load: ClassVar[str]
    """Load ``{{ file }}``, of ``{{ size }}`` bytes, and find the function ``{{ kernel }}``, an identifier. The file's
    content is ``options.read("{{ file }}", {{ size }})``, its path ``options.path("{{ file }}")``."""
    allocate: ClassVar[str]
    """Set the variable ``{{ address }}``, which is declared, to new ``{{ size }}`` bytes, at a multiple of
    ``{{ alignment }}``."""
    copy_in: ClassVar[str]
    """Copy the vector ``{{ host }}``, of ``{{ size }}`` bytes and more than none, to ``{{ address }}``."""
    launch: ClassVar[str]
    """Launch the kernel on a grid of ``{{ x }}``, ``{{ y }}``, ``{{ z }}`` with the argument block at
    ``{{ arguments }}``, of ``{{ size }}`` bytes."""
    wait: ClassVar[str]
    """Wait until all that was started has ended, and check that it did well."""
    copy_out: ClassVar[str]
    """Fill the vector ``{{ host }}``, of ``{{ size }}`` bytes and more than none, from ``{{ address }}``."""
    free: ClassVar[str]
    """Free ``{{ address }}``."""
    close: ClassVar[str]
    """Close the device."""

    def binary(self, capture: Capture) -> tuple[str, bytes]:
        """Name and content of the file that `load` reads: by default the recorded binary."""
        return capture.manifest.kernel.binary.file, capture.binary

    def sources(self, capture: Capture) -> dict[str, bytes]:
        """More files of the program, by their paths in it. Those that end in ``.cpp`` are compiled with it."""
        return {}

    def prefix(self) -> str:
        """Where CMake looks for packages; empty where it needs no telling."""
        return ""

    def check(self, capture: Capture) -> None:
        """Raise `CaptureError` for a launch that this runtime cannot replay."""


BUILT_IN = {
    "host": "triton_porting_kit.replay.host_runtime:HostRuntime",
    "vnpu": "triton_porting_kit.replay.vnpu_runtime:VnpuRuntime",
}
"""The kit's own, by the names that drivers give."""


def runtime_of(manifest: Manifest) -> ReplayRuntime:
    """The runtime of a launch: one of the kit's, or that of the installed backend it was recorded on.

    A manifest names nothing that is imported. Raises `CaptureError` where there is none.
    """
    if not manifest.runtime or manifest.runtime in BUILT_IN:
        return find_runtime(manifest.runtime)
    from triton.backends import backends

    installed = backends.get(manifest.backend)
    name = str(getattr(installed.driver, "replay_runtime", "")) if installed else ""
    if name != manifest.runtime:
        raise CaptureError(
            f"the launch was recorded with the runtime {manifest.runtime!r}, which is not that of an installed backend "
            f"{manifest.backend!r}, and a recorded launch alone says nothing about what is imported; name the runtime "
            "with --runtime if you trust it"
        )
    return find_runtime(name)


def find_runtime(name: str) -> ReplayRuntime:
    """The runtime that a user or an installed driver names. Raises `CaptureError` where there is none."""
    if not name:
        raise CaptureError(
            "the driver of this launch does not say how C++ programs use its runtime (`replay_runtime`); name one "
            f"with --runtime: {', '.join(BUILT_IN)}, or MODULE:NAME of a triton_porting_kit.replay.ReplayRuntime"
        )
    module, colon, attribute = BUILT_IN.get(name, name).partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute) if colon else None
    except (ImportError, AttributeError) as error:
        raise CaptureError(f"the runtime {name!r} cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, ReplayRuntime)):
        raise CaptureError(
            f"{name!r} is no runtime: name {', '.join(BUILT_IN)}, or MODULE:NAME of a class that derives from "
            "triton_porting_kit.replay.ReplayRuntime"
        )
    return found()
