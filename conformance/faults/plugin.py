"""Makes Triton find the test backends: a folder with distribution metadata on the path of worker processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BACKEND = "triton_porting_kit.conformance.faults.backend"
NAME = "faulty"
GPU_BACKEND = "triton_porting_kit.conformance.faults.gpu_backend"
GPU_NAME = "faultygpu"
GPU_TARGET = f"{GPU_NAME}:gfx942:64"
"""The target for faults in binaries."""


@contextmanager
def installed() -> Iterator[Path]:
    """A temporary folder in which the test backends appear to be installed."""
    with tempfile.TemporaryDirectory(prefix="tpk-faults-") as folder:
        info = Path(folder) / "tpk_faulty_backend-0.dist-info"
        info.mkdir(mode=0o700)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tpk-faulty-backend\nVersion: 0\n")
        (info / "entry_points.txt").write_text(
            f"[triton.backends]\n{NAME} = {BACKEND}\n{GPU_NAME} = {GPU_BACKEND}\n"
        )
        yield Path(folder)


def environment(folder: Path, fault: str) -> dict[str, str]:
    """The additional environment variables of worker processes for one fault."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    return {"PYTHONPATH": path, "TPK_FAULT": fault}
