"""The class of fault of a mutant, derived from its file."""

from __future__ import annotations

import fnmatch

CLASSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mask", ("compiler/structured/masks.py", "compiler/structured/guards.py", "compiler/lane_*.py")),
    (
        "address",
        (
            *(
                f"compiler/structured/{name}.py"
                for name in ("affine", "analysis", "carried", "exactness", "memory", "poly", "ranges", "residues")
            ),
            *(f"compiler/loops/tiles/{name}.py" for name in ("access", "lane_memory", "peeling")),
            *(f"compiler/loops/memory/{name}.py" for name in ("accesses", "overlaps", "interval_analysis")),
        ),
    ),
    (
        "diagnosis",
        (
            *(f"compiler/{name}.py" for name in ("crashes", "defects", "integrity", "locations", "record")),
            "compiler/source_comments.py",
            "compiler/loops/memory/checking.py", "compiler/loops/ir/source_*.py", "compiler/structured/diagnostics.py",
            "compiler/dialect/verifier.py", "compiler/dialect/document.py", "compiler/ptx/document.py",
            "compiler/ptx/errors.py",
            "backends/cpu/crashes.py", "launcher/checked.py", "driver/benchmark.py",
            "driver/host/native/access.*", "driver/host/native/crashes.*", "driver/host/native/mappings.cpp",
        ),
    ),
    (
        "order",
        (
            *(
                f"compiler/loops/memory/{name}.py"
                for name in ("atomics", "ordered", "polls", "row_prefetch", "non_temporal", "store_footprint")
            ),
            *(f"compiler/loops/matmul/{name}.py" for name in ("software_prefetch", "k_blocking")),
        ),
    ),
    (
        "control",
        (
            "compiler/*/control*.py", "compiler/*/branches.py", "compiler/*/regions.py", "compiler/loops/control/*",
        ),
    ),
    (
        "value",
        (
            "compiler/loops/*", "compiler/structured/*", "compiler/dialect/*", "compiler/ttir/*",
            "compiler/libdevice.py", "compiler/ptx/*",
            "driver/host/native/functions*", "driver/host/native/float_environment.h", "driver/host/native/print.cpp",
        ),
    ),
    ("configuration", ("compiler/*", "backends/cpu/*", "driver/active.py")),
    (
        "launch",
        ("abi/*.py", "launcher/*", "driver/host/native/launch.cpp", "driver/host/native/job.*", "driver/native/grid.h"),
    ),
    ("host", ("driver/*", "abi/include/*")),
)  # fmt: skip
"""Classes and the patterns of their files; the first class that matches a file applies. ``diagnosis`` is the reporting
of faults; ``host`` is memory, streams and the driver's hooks."""


def class_of(path: str) -> str:
    """The class of a file: one of the names in `CLASSES`. Raises `KeyError` if no pattern matches."""
    for name, patterns in CLASSES:
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns):
            return name
    raise KeyError(path)
