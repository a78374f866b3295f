"""Packages that register torch devices, as new processes find them: two of them, and another Triton backend selected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from host_backend import BACKEND, NAME

WHICH = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
print(json.dumps([torch._C._get_privateuse1_backend_name(), [str(w.message) for w in caught]]))
"""
BOTH = """
import json, torch, triton
function = lambda x: (x * 2 + 1).sum(-1)
x = torch.arange(12.0).reshape(3, 4)
there = x.to("test_chip")
results = [
    torch.compile(function, options={"cpu_backend": "triton"})(x),
    torch.compile(function)(there).cpu(),
    function(there).cpu(),
]
active = triton.runtime.driver.active.backend_name
print(json.dumps([active, torch.test_chip.fallbacks(), [r.tolist() for r in results]]))
"""


def install(folder: Path, name: str, register: str) -> None:
    """Write a package whose torch device is registered by some code."""
    (folder / f"{name}_device.py").write_text(f"def register():\n    {register}\n")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[torch.backends]\n{name} = {name}_device:register\n")


def run(program: str, folder: Path, selected: str = "") -> Any:
    """What a process prints that finds the packages of a folder."""
    places = os.pathsep.join([str(folder), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
            "TRITON_DEFAULT_BACKEND": selected,
            "PYTHONPATH": places,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("selected", ["alpha", "beta"])
def test_the_variable_selects_one_of_two_packages(tmp_path: Path, selected: str) -> None:
    for name in ("alpha", "beta"):
        install(
            tmp_path,
            name,
            f"from triton_porting_kit.pytorch import register_device; register_device({name!r}, {name!r})",
        )
    assert run(WHICH, tmp_path, selected)[0] == selected
    taken, messages = run(WHICH, tmp_path)
    (other,) = {"alpha", "beta"} - {taken}
    assert any(f"TRITON_DEFAULT_BACKEND={other}" in message for message in messages)


def test_the_device_works_while_triton_uses_the_cpu(inductor_cache: Path, tmp_path: Path) -> None:
    """Kernels that the program launches itself are the selected backend's; those of torch are the device's."""
    install(tmp_path, BACKEND, "import triton, host_backend; host_backend.register()")
    active, fallbacks, results = run(BOTH, tmp_path, "cpu")
    assert NAME == "test_chip"
    assert (active, fallbacks) == ("cpu", {})
    assert results == 3 * [[16.0, 48.0, 80.0]]
