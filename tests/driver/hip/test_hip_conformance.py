"""The conformance suite judges the AMD backend on the stand-in, as far as that goes without running kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from standin_library import Standin

RUNTIME = """
    (runtime/memory/* or runtime/copies/* or runtime/streams/* or runtime/events/* or runtime/modules/* or
     runtime/device/*)
    and not (
      runtime/streams/kernel-then-copy or runtime/streams/copy-then-kernel or runtime/streams/kernels-in-order or
      runtime/streams/synchronize-stream or runtime/streams/synchronize-device or runtime/streams/destroy-finishes or
      runtime/events/wait or runtime/events/wait-default or runtime/events/wait-chain or runtime/events/fan-in or
      runtime/events/synchronize or runtime/events/record-again or runtime/events/destroyed-while-waited-for or
      runtime/events/elapsed-grows or runtime/device/*failure* or runtime/device/reset-usable)
"""
"""Checks of the runtime that look at no kernel's result. Some want kernels to take their time, as those here do."""

REGISTRATION = """
    registration/*
    and not (
      registration/options/launch-* or registration/hashes/again-* or registration/hashes/stale-* or
      registration/hashes/fresh-process or registration/stages/loaded or registration/stages/from-ttir or
      registration/cache/*)
"""
"""The same of the registration with Triton."""


def conform(standin: Standin, folder: Path, selected: str, shard: str = "1/1") -> None:
    """Run checks of the suite; all of them pass, and HIP is used as it may be."""
    log = folder / "undefined"
    environment = {
        "TPK_HIP_LIBRARY": str(standin.path),
        "HIP_STANDIN_LOG": str(log),
        "HIP_STANDIN_KERNEL_US": "20000",
        "TRITON_DEFAULT_BACKEND": "amdgpu",
        "TRITON_CACHE_DIR": str(folder / "cache"),
    }
    command = [sys.executable, "-m", "triton_porting_kit.cli", "conform", "--backend", "amdgpu"]
    command += ["--select", " ".join(selected.split()), "--shard", shard, "--report", str(folder / "report")]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, cwd=folder)
    report = json.loads((folder / "report" / "report.json").read_text())
    verdicts = {check["name"]: check["status"] for check in report["checks"]}
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "pass"} == {}, done.stdout
    assert len(verdicts) > 100
    assert not log.exists(), log.read_text()


@pytest.mark.parametrize(
    "shard", ["1/3", *(pytest.param(f"{part}/3", marks=pytest.mark.slow) for part in (2, 3))]
)
def test_the_runtime_level(standin: Standin, tmp_path: Path, shard: str) -> None:
    conform(standin, tmp_path, RUNTIME, shard)


@pytest.mark.slow
def test_the_registration_level(standin: Standin, tmp_path: Path) -> None:
    conform(standin, tmp_path, REGISTRATION)
