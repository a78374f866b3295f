"""What kind of fault a mutant is, by the file that it is in."""

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
            *(
                f"compiler/loops/{name}.py"
                for name in ("access", "lane_memory", "memory", "overlaps", "places", "ranges", "spans")
            ),
        ),
    ),
    (
        "diagnosis",
        (
            *(f"compiler/{name}.py" for name in ("crashes", "defects", "integrity", "locations", "remarks", "record")),
            "compiler/loops/checking.py", "compiler/loops/remarks.py", "compiler/structured/diagnostics.py",
            "backends/cpu/crashes.py", "launcher/checked.py", "driver/benchmark.py",
            "driver/host/native/access.*", "driver/host/native/crashes.*", "driver/host/native/mappings.cpp",
        ),
    ),
    (
        "order",
        tuple(
            f"compiler/loops/{name}.py"
            for name in ("ahead", "atomics", "ordered", "polls", "prefetching", "streaming", "waiting", "written")
        ),
    ),
    ("control", ("compiler/*/control*.py", "compiler/*/branches.py", "compiler/*/regions.py", "compiler/*/carries.py")),
    (
        "value",
        (
            "compiler/loops/*", "compiler/structured/*", "compiler/ttir/*", "compiler/libdevice.py",
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
"""In order: the first that has a pattern for the file. ``diagnosis`` is what is told of faults; ``host`` is memory,
streams and the driver's hooks."""


def class_of(path: str) -> str:
    """One of the names in `CLASSES`."""
    for name, patterns in CLASSES:
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns):
            return name
    raise KeyError(path)
