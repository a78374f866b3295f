"""Run folders that tests of reports are made from: every status, every kind of evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from triton_porting_kit.conformance import mandatory
from triton_porting_kit.conformance.record import Listing, Record
from triton_porting_kit.conformance.report.model import Report

TRITON = "3.9.0"
NASTY = "</script><script>alert('ü €')</script> & <b>\x00\x1b[31m"
"""What a message may hold: markup, other scripts, control characters."""


def right(elements: int = 8) -> dict[str, Any]:
    """A comparison in which nothing differs."""
    return {
        "kind": "comparison",
        "what": "result 0 (fp32)",
        "elements": elements,
        "differ": 0,
        "rule": "identical",
    }


def wrong(differ: int = 3) -> dict[str, Any]:
    """A comparison in which elements differ."""
    return {
        **right(),
        "differ": differ,
        "worst_ulp": 12.0,
        "index": [1, 2],
        "actual": "1.5",
        "expected": "2.5",
        "message": f"{differ} of 8 differ; element [1, 2] is 1.5, not 2.5",
    }


def error(message: str = "no such operation", stage: str = "compiled: ttir") -> dict[str, Any]:
    """An exception."""
    return {
        "kind": "error",
        "stage": stage,
        "type": "CompilationError",
        "message": message,
        "traceback": f'Traceback (most recent call last):\n  File "x.py", line 1, in f\nCompilationError: {message}',
    }


def crash() -> dict[str, Any]:
    """A worker process that died."""
    message = "the process was ended by SIGSEGV"
    return {
        "kind": "process",
        "stage": "launched",
        "signal": "SIGSEGV",
        "message": message,
        "output": "last words",
    }


def timeout() -> dict[str, Any]:
    """A worker process that was ended."""
    return {"kind": "process", "stage": "launched", "timeout": 60.0, "message": "it took more than 60 s"}


def harness() -> dict[str, Any]:
    """A defect of the suite."""
    return {"kind": "harness", "stage": "check", "type": "TypeError", "message": "the suite is at fault"}


def record(name: str, *evidence: Mapping[str, Any], listing: Listing | None = None, seed: int = 0) -> Record:
    """A check that ran for a while."""
    from triton_porting_kit.conformance.seeds import seed_of

    level = name.partition("/")[0]
    requirement = f"What {name} is about holds."
    return Record(name, level, requirement, 0.0125, seed_of(seed, name), list(evidence or [right()]), listing)


LISTINGS = {
    name: Listing(name, f"language/*/{op}-*", f"{op} is listed", "https://example.org/1")
    for name, op in (("unsupported", "own_sub"), ("expected_failures", "own_mul"), ("waivers", "own_add"))
}
"""An entry of each list, by the list's name; the operations are none of Triton's."""


def every_status() -> list[Record]:
    """One check or more of every status."""
    unsupported, expected, waived = LISTINGS.values()
    return [
        record("language/arithmetic/add-fp32-tile_1"),
        record("language/arithmetic/add-fp32-tile_324", right(), wrong()),
        record("language/arithmetic/add-fp64-tile_324", wrong(8)),
        record("language/arithmetic/add-fp64-tile_1", error(NASTY)),
        record("language/arithmetic/add-i8-tile_1", crash()),
        record("language/arithmetic/add-i8-tile_324", timeout()),
        record("language/arithmetic/add-i16-tile_1", harness()),
        record(
            "language/arithmetic/add-i16-tile_324", {"kind": "expectation", "what": "it holds", "holds": True}
        ),
        record(
            "language/arithmetic/add-i32-tile_1",
            {
                "kind": "expectation",
                "what": "guards",
                "holds": False,
                "message": "9 bytes",
                "stage": "out-of-bounds write",
            },
        ),
        record("language/arithmetic/own_sub-fp32-tile_1", error(), listing=unsupported),
        record("language/arithmetic/own_sub-fp64-tile_1", right(), listing=unsupported),
        record("language/arithmetic/own_mul-fp32-tile_1", wrong(), listing=expected),
        record("language/arithmetic/own_add-fp32-tile_1", wrong(), listing=waived),
        record("language/arithmetic/div-fp64-tile_1", {"kind": "compiled", "what": "kernel", "bytes": 100}),
    ]


KERNELS = {"options": {"levels": ["kernels"], "select": None, "shard": None}}
"""Metadata of a run of a level that has few checks."""


def everything(level: str = "language") -> list[Record]:
    """All mandatory checks of a level, passed."""
    return [record(name) for name in mandatory.names(level, (3, 9))]


def metadata(**fields: Any) -> dict[str, Any]:
    """What ``run.json`` says, but the names of checks. `fields` replace its own."""
    lists = {
        name: [{"pattern": e.pattern, "reason": e.reason, "link": e.link}] for name, e in LISTINGS.items()
    }
    return {
        "suite_version": mandatory.SUITE_VERSION,
        "kit_version": "0.1.0",
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "triton_version": TRITON,
        "python": "3.11.7",
        "platform": "Linux x86_64",
        "toolchain": {"llvmlite": "0.50.0", "numpy": "2.2.0"},
        "backend": "npu",
        "driver": "vendor.driver.NpuDriver",
        "target": {"backend": "npu", "arch": "one", "warp_size": 1},
        "device": {"memory": "kit", "name": "NPU <One>", "memory_bytes": 1 << 34, "core_count": 64},
        "profile": {
            "source": "/opt/npu/conformance.toml",
            "memory": "kit",
            "capabilities": {"types": None, "atomics": None, "features": None, "maximum_tile": None},
            **lists,
        },
        "seed": 0,
        "options": {
            "levels": ["language"],
            "select": None,
            "shard": None,
            "compile_only": False,
            "target": None,
        },
        "start": "2026-03-01T10:00:00+00:00",
        "end": "2026-03-01T10:12:30+00:00",
        "complete": True,
    } | fields


PERFORMANCE: dict[str, Any] = {
    "launch": {"arguments": 4, "seconds": 4.2e-06, "spread": 1e-07, "round_trip_seconds": 1.1e-05},
    "copies": [
        {"direction": "htod", "bytes": 1 << 26, "seconds": 0.005, "spread": 1e-4, "bytes_per_second": 12.5e9}
    ],
    "kernels": [
        {
            "kernel": "softmax",
            "shape": [4096, 1024],
            "type": "fp32",
            "seconds": 0.002,
            "spread": 0.0001,
            "numpy_seconds": 0.02,
            "torch_seconds": None,
        },
        {
            "kernel": "matmul",
            "shape": "512x512x512",
            "type": "bf16",
            "seconds": 0.001,
            "spread": 0.0,
            "numpy_seconds": 0.5,
            "torch_seconds": 0.0011,
        },
        {"kernel": "dropout", "shape": "4096", "type": "fp64", "seconds": None, "error": "no fp64"},
    ],
}
"""Figures as the suite measures them."""


def report(records: Iterable[Record], **fields: Any) -> Report:
    """The report of a run."""
    return Report(run=metadata(**fields), records=tuple(records))


def write_run(
    folder: Path, records: Iterable[Record], planned: Iterable[str] | None = None, **fields: Any
) -> Path:
    """A run folder, as runs leave it."""
    folder.mkdir(parents=True, exist_ok=True)
    found = list(records)
    names = [r.name for r in found] if planned is None else list(planned)
    run = {**metadata(**fields), "planned": names, "not_applicable": []}
    (folder / "run.json").write_text(json.dumps(run))
    lines = "".join(json.dumps(r.to_json()) + "\n" for r in found)
    (folder / "records.jsonl").write_text(lines)
    return folder
