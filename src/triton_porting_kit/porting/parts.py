"""The parts of a port, and whether each is the virtual NPU's, the kit's, or the vendor's own."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from triton_porting_kit import untrusted
from triton_porting_kit.chips.files import load, parse
from triton_porting_kit.conformance.report.commands import load as load_report
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.status import Status
from triton_porting_kit.driver import HOOKS
from triton_porting_kit.errors import PortingKitError
from triton_porting_kit.porting.native_sources import Place
from triton_porting_kit.porting.sources import Repository
from triton_porting_kit.porting.template import Template

_VIRTUAL = re.compile(r"\bvnpu_(?!last_error\b|status_name\b)\w+\s*\(")
"""A call of the virtual NPU's runtime, except calls that only get error texts."""


class State(StrEnum):
    """The owner of a part."""

    VIRTUAL = "virtual NPU"
    KIT = "the kit's"
    """It works for any chip and need not be replaced."""
    OWN = "own"
    MISSING = "missing"


@dataclass(frozen=True)
class Part:
    """A hook of the device, or another step of a port."""

    name: str
    state: State
    place: Place | None
    checks: tuple[str, ...] = ()
    """Patterns of the names of checks."""
    results: Mapping[Status, int] | None = None
    """The number of these checks by their last status."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": str(self.state),
            "file": self.place.file if self.place else None,
            "line": self.place.line if self.place else None,
            "checks": list(self.checks),
            "results": {str(status): count for status, count in (self.results or {}).items()},
        }


OWN_STAGES = "OWN_STAGES"
"""In repositories of the shape opencl: the stages of the vendor, by name."""

_LAUNCHER_CHECKS = ("runtime/arguments/*", "runtime/structures/*", "runtime/grids/*", "runtime/refusals/*")
_SEVERAL = {"peers": "memcpy_peer", "groups": "open_group"}
"""Steps whose hooks are one part, and the hook that tells whose they are."""
_ACTIVE_CHECKS = ("registration/discovery/driver-active",)


def parts_of(repository: Repository, reports: Path) -> list[Part]:
    """The parts of a port, in the order in which they are replaced. Raises `PortingKitError`."""
    last = _last_results(reports)

    def part(name: str, judged: tuple[State, Place | None], checks: tuple[str, ...]) -> Part:
        found = (
            status for check, status in last.items() if any(fnmatch.fnmatchcase(check, p) for p in checks)
        )
        counts = Counter(found)
        return Part(name, *judged, checks, {s: counts[s] for s in Status if s in counts})

    hooks = {
        name: part(name, _hook(repository, name), hook.checks)
        for name, hook in HOOKS.items()
        if hook.step not in _SEVERAL
    }
    # A device that knows no others lacks nothing.
    several = [
        part(step, _hook(repository, name), (f"runtime/{step}/*",))
        for step, name in _SEVERAL.items()
        if repository.method(name)
    ]
    target, binary = _target(repository), _binary(repository)
    found = [
        *(part(name, judged, checks) for name, (judged, checks) in _chip(repository).items()),
        part("runtime library", _library(repository), _ACTIVE_CHECKS),
        part("devices", _devices(repository), _ACTIVE_CHECKS),
        *hooks.values(),
        *several,
        part("launcher", _launcher(repository, hooks), _LAUNCHER_CHECKS),
        part("target", target, ("registration/stages/*", "language/*")),
        part("binary", binary, ("registration/stages/binary", "runtime/modules/*")),
    ]
    if modelled := repository.flag("models_time"):  # of a real chip, the time of events is the host's
        found.append(part("model time", (State.VIRTUAL, modelled), HOOKS["elapsed_time"].checks))
    if replay := repository.constant("replay_runtime"):
        states = {"vnpu": State.VIRTUAL, "host": State.KIT}
        found.append(part("emitted programs", (states.get(replay[1], State.OWN), replay[0]), ()))
    return [*found, part("tests", _tests(repository), ())]


# --- the steps -------------------------------------------------------------------------------------------


_Judged = tuple[tuple[State, Place | None], tuple[str, ...]]


def _chip(repository: Repository) -> dict[str, _Judged]:
    """The description of a chip and its header of intrinsics, in repositories for chips with on-chip memory.

    The description is the virtual NPU's as long as its figures are those of the kit's own chip.
    """
    file = repository.package / f"{repository.backend}.toml"
    if not file.is_file():
        return {}
    own, found = load("n1"), parse(untrusted.read_text(file, untrusted.SOURCE, PortingKitError), str(file))
    same = replace(found, name=own.name, title=own.title) == own
    place = Place(file.relative_to(repository.root).as_posix(), 1)
    judged: dict[str, _Judged] = {
        "description": ((State.VIRTUAL if same else State.OWN, place), ("kernels/*",))
    }
    for header in sorted(repository.package.glob("include/*.h")):
        name = header.relative_to(repository.root).as_posix()
        virtual = repository.line(name, r"^#include <tpk_npu\.h>")
        state = State.VIRTUAL if virtual else State.OWN
        judged["intrinsics"] = ((state, virtual or Place(name, 1)), ("registration/stages/*",))
    return judged


def _library(repository: Repository) -> tuple[State, Place | None]:
    """The runtime library that the extension is linked with; the kit finds OpenCL's when it runs."""
    if _opencl(repository):
        return State.KIT, repository.place_of_class(repository.device)
    sign = repository.line("CMakeLists.txt", r"^[^#]*(find_package\(\s*vnpu\b|\bvnpu::)")
    return (State.VIRTUAL, sign) if sign else (State.OWN, repository.line("CMakeLists.txt", "."))


def _devices(repository: Repository) -> tuple[State, Place | None]:
    """The driver's method that tells whether there is a chip; the kit's always returns True."""
    if repository.driver is None:
        return State.OWN, None
    if repository.method("is_available", repository.driver) is None:
        return State.KIT, repository.place_of_class(repository.driver)
    return _behind(repository, "is_available", repository.driver)


def _hook(repository: Repository, name: str) -> tuple[State, Place | None]:
    method = repository.method(name)
    if method is None or method.raises:
        # Some hooks, such as the native launch routine, are optional.
        optional = method is None and HOOKS[name].optional
        place = method.place if method else repository.place_of_class(repository.device)
        return State.OWN if optional else State.MISSING, place
    return _behind(repository, name)


def _behind(repository: Repository, name: str, cls: str | None = None) -> tuple[State, Place | None]:
    """The owner of a method: the virtual NPU if it or a C++ function that it calls uses the virtual NPU's runtime."""
    method = repository.method(name, cls)
    assert method is not None
    if method.kit:
        return State.KIT, method.place
    sources = repository.native
    natives = [native for native in method.natives if native not in ("context", "Device")]
    natives.sort(key=lambda native: native != name)
    for native in natives:
        known = native in sources.functions or sources.bound(native) is not None
        if sources and not known:
            return State.MISSING, method.place
    behind = sources.behind(natives, keep_out=HOOKS)
    if name == "launch_entry" and any(re.search(r"(->|\.)\s*launch\s*\(", f.body) for f in behind):
        behind += sources.behind(["launch"], keep_out=HOOKS)
    for function in behind:
        if _VIRTUAL.search(function.body):
            return State.VIRTUAL, function.place
    if method.names_virtual:
        return State.VIRTUAL, method.place
    if behind:
        return State.OWN, behind[0].place
    return State.OWN, (sources.bound(natives[0]) if natives else None) or method.place


def _launcher(repository: Repository, hooks: Mapping[str, Part]) -> tuple[State, Place | None]:
    """The launcher. The kit's launchers call a hook, or a runtime routine whose name they are given."""
    driver = repository.driver
    if _opencl(repository) and driver and not repository.method("launcher_cls", driver):
        return State.KIT, repository.place_of_class(driver)
    if symbol := repository.use("RuntimeSymbol"):
        return State.OWN, symbol
    names = ("GeneratedLauncher", "PackedLauncher", "PythonLauncher")
    derived = repository.subclass("Launcher")
    used = [(place, name) for name in names if (place := repository.call(name))]
    place, base = derived or (used[0] if used else (None, ""))
    if base not in names:
        return State.OWN, place
    ends_in = hooks["launch" if base == "PythonLauncher" else "launch_entry"]
    return (State.VIRTUAL if ends_in.state is State.VIRTUAL else State.KIT), place


def _target(repository: Repository) -> tuple[State, Place | None]:
    """The target of loops and machine code. The virtual NPU's target is the CPU of this machine."""
    if inherited := _opencl(repository):
        own = repository.key(OWN_STAGES, ("ttir", "structured", "loops", "simt", "opencl"))
        return (State.OWN, own) if own else (State.KIT, inherited)
    if host := repository.attribute("CpuTarget", "host"):
        return State.VIRTUAL, host
    if named := repository.attribute("CpuTarget", "of") or repository.call("cpu_pipeline"):
        return State.OWN, named
    portable = repository.attribute("CpuTarget", "portable") or repository.call("cpp_pipeline", "target", 0)
    return (State.KIT, portable) if portable else (State.OWN, _compiler(repository))


def _binary(repository: Repository) -> tuple[State, Place | None]:
    """The code that makes binaries. Shared objects for this machine are the virtual NPU's."""
    if inherited := _opencl(repository):
        own = repository.key(OWN_STAGES, ("clbin",))
        return (State.OWN, own) if own else (State.KIT, inherited)
    is_virtual = _target(repository)[0] is State.VIRTUAL
    linked = repository.use("link_shared_object")
    if linked and is_virtual:
        return State.VIRTUAL, linked
    system = (
        repository.use("CPP_COMMAND")
        or repository.call("cpp_pipeline", "command", 1)
        or repository.call("cpp_stages", "command", 0)
    )
    if system:
        return State.VIRTUAL, system
    return (State.KIT, linked) if linked else (State.OWN, _compiler(repository))


def _opencl(repository: Repository) -> Place | None:
    """The class that derives from the kit's OpenCL backend."""
    found = repository.subclass("OpenCLBackend")
    return found[0] if found else None


def _compiler(repository: Repository) -> Place | None:
    found = repository.subclass("Backend")
    return found[0] if found else None


def _tests(repository: Repository) -> tuple[State, Place | None]:
    about = [test for test in repository.tests if test.about_virtual]
    if about:
        return State.VIRTUAL, about[0].place
    if _opencl(repository) and repository.tests:  # those of the template suit any device
        template = _template_tests()
        own = (test.place for test in repository.tests if test.name not in template)
        place = next(own, None)
        return (State.OWN, place) if place else (State.KIT, repository.tests[0].place)
    return State.OWN, repository.tests[0].place if repository.tests else None


def _template_tests() -> frozenset[str]:
    """The names of the template's tests."""
    files = (Template.own().root / "template" / "tests").glob("*.jinja")
    return frozenset(
        name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    )


# --- reports ---------------------------------------------------------------------------------------------


def _last_results(reports: Path) -> dict[str, Status]:
    """The last status of each check, from the reports of a full run and of a run with `--select`."""
    found = []
    for folder in (reports, reports / "selected"):
        try:
            report = load_report(folder)
        except ReportError:
            continue  # There is no report, or another release of the kit wrote it.
        found.append((str(report.run.get("start", "")), report.statuses))
    return {
        name: status
        for _, statuses in sorted(found, key=lambda run: run[0])
        for name, status in statuses.items()
    }
