"""The results as JSON and as a table."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from triton_porting_kit.driver import Device

from .cases import Measurement
from .timing import Samples

PACKAGES = ("triton-porting-kit", "triton", "numpy", "torch", "llvmlite", "numba-cuda-mlir")


def show(samples: Samples | None) -> str:
    """Median and interquartile range in the unit that suits the median; a dash for None."""
    if samples is None:
        return "-"
    scale, unit = (1e3, "ms") if samples.median >= 1e-3 else (1e6, "µs")
    return f"{samples.median * scale:.2f} ± {samples.iqr * scale:.2f} {unit}"


def facts(device: Device, threads: int) -> dict[str, Any]:
    """What the numbers depend on: the machine, the threads, and the releases installed."""
    versions: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    properties = device.properties()
    return {
        "machine": {
            "device": properties.name,
            "arch": properties.arch,
            "cores": properties.core_count,
            "host": platform.machine(),
            "system": platform.platform(),
            "cpus": len(os.sched_getaffinity(0)),
            "load": os.getloadavg(),
        },
        "threads": threads,
        "versions": {"python": platform.python_version(), **versions},
    }


def write_json(
    path: Path,
    about: Mapping[str, Any],
    measurements: Sequence[Measurement],
    compile_times: Mapping[str, Samples],
    latency: Samples | None,
    build: Samples | None,
) -> None:
    """Write everything measured, every sample included. Times are in seconds."""
    results = {
        **about,
        "cases": [measurement.to_json() for measurement in measurements],
        "compile_seconds": {name: samples.to_json() for name, samples in compile_times.items()},
        "launch_seconds": latency.to_json() if latency else None,
        "launcher_build_seconds": build.to_json() if build else None,
    }
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def print_tables(
    console: Console,
    measurements: Sequence[Measurement],
    compile_times: Mapping[str, Samples],
    latency: Samples | None,
    build: Samples | None,
) -> None:
    """Print medians with their interquartile ranges, and how often as fast as torch we are."""
    if measurements:
        table = Table(title="Median ± interquartile range of one call", box=SIMPLE)
        table.add_column("case", no_wrap=True)
        for heading in ("ours", "NumPy", "torch", "torch / ours", "result"):
            table.add_column(heading, justify="right", no_wrap=True)
        for measurement in measurements:
            ratio = measurement.speed_against_torch
            table.add_row(
                measurement.name,
                *(show(measurement.samples.get(name)) for name in ("ours", "numpy", "torch")),
                "-" if ratio is None else f"{ratio:.2f}",
                "ok" if measurement.within_tolerance else "[bold red]WRONG[/]",
            )
        console.print(table)
    if compile_times or latency or build:
        table = Table(title="Before a kernel computes", box=SIMPLE)
        table.add_column("what", no_wrap=True)
        table.add_column("time", justify="right", no_wrap=True)
        for name, samples in compile_times.items():
            table.add_row(f"compile {name}, nothing cached", show(samples))
        if latency:
            table.add_row("launch an empty kernel with four arguments", show(latency))
        if build:
            table.add_row("build the generated launch code of another signature", show(build))
        console.print(table)
