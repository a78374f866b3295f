"""Building and running the C++ programs that recorded launches are written as."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
from pathlib import Path

from triton_porting_kit.binaries.shared_object import link_shared_object
from triton_porting_kit.replay import Capture
from triton_porting_kit.replay.manifest import StoredFile


def build(folder: Path) -> Path:
    """The program, built as its README says."""
    for command in (["cmake", "--preset", "default"], ["cmake", "--build", "build"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stderr.lower(), done.stderr
    return folder / "build" / "replay"


def run(program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it outside of its folder."""
    command = [str(program), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd="/", env=os.environ | environment
    )


def for_virtual_npu(capture: Capture) -> Capture:
    """The launch as if it had been recorded on a virtual NPU, which loads shared objects."""
    binary = link_shared_object(capture.binary)
    stored = StoredFile("kernel.so", len(binary), hashlib.sha256(binary).hexdigest())
    kernel = dataclasses.replace(capture.manifest.kernel, binary=stored, stage="so")
    manifest = dataclasses.replace(capture.manifest, kernel=kernel, runtime="vnpu")
    return Capture(capture.folder, manifest, {**capture.contents, "kernel.so": binary})
