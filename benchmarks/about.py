"""What figures depend on: the machine, the date, and the releases installed."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PACKAGES = ("triton-porting-kit", "triton", "torch", "numpy", "llvmlite", "numba-cuda-mlir")


def versions() -> dict[str, str | None]:
    """Releases of Python and of the packages that figures depend on; None for one that is not there."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def cpu_name(path: Path = Path("/proc/cpuinfo")) -> str:
    """What the processor calls itself, or the name of its architecture."""
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def facts(device: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that a reader of figures should know."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": {
            "cpu": cpu_name(),
            "host": platform.machine(),
            "cpus": len(os.sched_getaffinity(0)),
            "system": platform.system(),
            "load": [round(value, 2) for value in os.getloadavg()],
            "device": device,
        },
        "versions": versions(),
    }
