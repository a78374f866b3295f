"""The checks of `tpk doctor` about torch, which is optional."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from triton_porting_kit.cli.findings import Finding, Status
from triton_porting_kit.cli.requirements import TORCH, within

_GROUP = "torch.backends"
_KIT = "triton_porting_kit."
"""Where the kit's own entry point of this group is, which is for CPU tensors and registers no device."""
_UNNAMED = "privateuseone"
_TIMEOUT_SECONDS = 120
_QUESTION = """
import json, sys, torch
name = torch._C._get_privateuse1_backend_name()
module = getattr(torch, name, None)
kit = sys.modules.get("triton_porting_kit.pytorch.accelerator")
backend = kit.accelerator().backend if kit and kit.registered_name() == name else name
print(json.dumps({"name": name, "backend": backend, "available": bool(module) and module.is_available()}))
"""


def torch() -> Iterator[Finding]:
    """torch, and whether its release is tested. Only its metadata is read, because importing it takes seconds."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        yield Finding(
            "torch",
            Status.NOTE,
            "not installed (optional)",
            f"with torch installed (`pip install torch=={TORCH}`), kernels also take torch tensors, backends are torch "
            "devices, and the demo compares with torch",
        )
        return
    if within(version, f">={TORCH},<={TORCH}"):
        yield Finding("torch", Status.OK, f"{version}, the tested release")
    else:
        yield Finding(
            "torch",
            Status.NOTE,
            f"{version}, which is not tested; {TORCH} is",
            f"run `pip install torch=={TORCH}`",
        )
    yield device()
    yield inductor()


def device() -> Finding:
    """The torch device that a package registers. A process of its own imports torch, since packages may crash it."""
    points = metadata.entry_points(group=_GROUP)
    offered = {point.name: _package(point) for point in points if not point.value.startswith(_KIT)}
    if not offered:
        return Finding("torch device", Status.OK, "no installed package has one; `tpk new` generates one")
    listed = ", ".join(f"{name} ({package})" for name, package in sorted(offered.items()))
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == "0":
        return Finding(
            "torch device",
            Status.NOTE,
            f"torch loads none of {listed}, because TORCH_DEVICE_BACKEND_AUTOLOAD is 0",
            "unset TORCH_DEVICE_BACKEND_AUTOLOAD",
        )
    found = _ask()
    if "error" in found:
        return Finding(
            "torch device",
            Status.PROBLEM,
            f"import torch fails with {listed}: {found['error']}",
            "repair or uninstall the package that the message names; TORCH_DEVICE_BACKEND_AUTOLOAD=0 imports torch "
            "without it",
        )
    return _judged(found, offered, listed)


def _judged(found: dict[str, Any], offered: dict[str, str], listed: str) -> Finding:
    name, backend = found["name"], found["backend"]
    if name == _UNNAMED:
        return Finding(
            "torch device",
            Status.NOTE,
            f"none is registered, although there are {listed}",
            "see the warnings of `python -c 'import torch'`",
        )
    what = f"torch.device({name!r}), of {offered.get(backend, 'an unknown package')}"
    others = sorted(set(offered) - {backend})
    if not found["available"]:
        return Finding(
            "torch device", Status.NOTE, f"{what}, finds no device", "make the device available to its driver"
        )
    if others:
        return Finding(
            "torch device",
            Status.NOTE,
            f"{what}, is available; torch has no room for that of {', '.join(others)} too",
            f"set TRITON_DEFAULT_BACKEND={others[0]} to have that one instead",
        )
    return Finding("torch device", Status.OK, f"{what}, is available")


def _ask() -> dict[str, Any]:
    """The torch device of a new process, or ``error``."""
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _QUESTION],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"it did not finish within {_TIMEOUT_SECONDS} s"}
    if done.returncode < 0:
        return {"error": f"the process was killed by signal {-done.returncode}"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _package(point: Any) -> str:
    return str(point.dist.name) if point.dist else "an unknown package"


def inductor() -> Finding:
    """Whether Inductor can generate Triton for CPU tensors: it asks for the backend named ``cpu``."""
    name = "Inductor, CPU"
    try:
        from triton.backends import backends
    except Exception as error:
        return Finding(name, Status.NOTE, f"Triton cannot be imported ({error})", "see the line of Triton")
    if "cpu" not in backends:
        return Finding(
            name,
            Status.NOTE,
            "Triton has no backend named cpu, so Inductor generates C++ only",
            "reinstall triton-porting-kit, which has one",
        )
    return Finding(
        name,
        Status.OK,
        "torch.compile(f, options={'cpu_backend': 'triton'}) generates Triton for CPU tensors",
    )
