"""The host CPU as a runtime of replay programs. The kernel is a shared object that the program loads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import jinja2

from triton_porting_kit.abi import header, kernel
from triton_porting_kit.binaries.elf import Object, read_object
from triton_porting_kit.binaries.shared_object import link_shared_object
from triton_porting_kit.errors import CaptureError, InvalidModule
from triton_porting_kit.replay.capture import Capture
from triton_porting_kit.replay.replaying import uses_matrix_registers
from triton_porting_kit.replay.runtimes import ReplayRuntime

TEMPLATES = Path(__file__).parent / "templates"
_ALWAYS = ("float_environment.h", "tpk_abi.h")
_SERVICES = ("services.cpp", "print.cpp")
_MATHEMATICS = ("functions_directed.cpp", "functions_elementary.cpp", "functions_special.cpp")


class HostRuntime(ReplayRuntime):
    """The CPU of this machine. The replay program runs the programs of the grid on its own threads."""

    name = "the host CPU"
    includes = ('"host_cpu.h"',)
    cmake = """\
find_package(Threads REQUIRED)
# The kernel calls routines of the program, which must be exported.
set_target_properties(replay PROPERTIES ENABLE_EXPORTS ON)
set_source_files_properties(host/functions_directed.cpp PROPERTIES COMPILE_OPTIONS -frounding-math)"""
    libraries = ("Threads::Threads", "${CMAKE_DL_LIBS}", "m")
    open = "// Nothing to open: device memory is the memory of this process."
    load = 'const host::Kernel kernel = host::load(options.path("{{ file }}"), "{{ kernel }}");'
    allocate = "{{ address }} = host::allocate({{ size }}, {{ alignment }});"
    copy_in = "std::memcpy(reinterpret_cast<void *>({{ address }}), {{ host }}.data(), {{ size }});"
    launch = "host::run(kernel, {{ x }}, {{ y }}, {{ z }}, {{ arguments }});"
    wait = "// Nothing to wait for: calls are synchronous."
    copy_out = "std::memcpy({{ host }}.data(), reinterpret_cast<const void *>({{ address }}), {{ size }});"
    free = "host::release({{ address }});"
    close = "host::unload(kernel);"

    def check(self, capture: Capture) -> None:
        _object(capture)

    def binary(self, capture: Capture) -> tuple[str, bytes]:
        return "kernel.so", link_shared_object(capture.binary)

    def sources(self, capture: Capture) -> dict[str, bytes]:
        calls = _calls(capture)
        services = any(name.startswith("tpk_host_") for name in calls)
        mathematics = sorted(name for name in calls if name.startswith(kernel.MATHEMATICS))
        matrices = uses_matrix_registers(capture.manifest)
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )

        def render(name: str) -> bytes:
            template = environment.get_template(name)
            return template.render(
                services=services,
                asserts=kernel.FAIL in calls,
                mathematics=mathematics,
                matrices=matrices,
            ).encode()

        found = {"host_cpu.h": render("host_cpu.h.j2")}
        if mathematics:
            found["host/mathematics.cpp"] = render("mathematics.cpp.j2")
        kit = [*_ALWAYS, *(_SERVICES if services else ()), *(_MATHEMATICS if mathematics else ())]
        return found | {f"host/{name}": content for name, content in _native_sources(kit).items()}


def _calls(capture: Capture) -> set[str]:
    """The names of the host's routines that the kernel calls."""
    return {s.name for s in _object(capture).symbols if s.section == 0 and s.name.startswith("tpk_")}


def _object(capture: Capture) -> Object:
    try:
        return read_object(capture.binary)
    except InvalidModule as error:
        raise CaptureError(f"the binary is not code for the host CPU: {error}") from error


def _native_sources(names: Iterable[str]) -> dict[str, bytes]:
    """The sources of the kit's host device and the headers that they include, by name."""
    from triton_porting_kit import driver

    folder = Path(driver.__file__).parent
    folders = (
        folder / "host" / "native",
        folder / "native",
        header.INCLUDE,
    )  # The last two have code that all devices share.
    found: dict[str, bytes] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            path = next(path for folder in folders if (path := folder / name).is_file())
            found[name] = path.read_bytes()
            waiting += re.findall(r'^#include "([^"]+)"', found[name].decode(), re.MULTILINE)
    return found
