"""A fresh cache for every test, arrays, and kernels that run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The compile cache of this test, empty; no other setting of the user's reaches it."""
    for name in list(os.environ):
        if name.startswith(("TRITON_", "TPK_")):
            monkeypatch.delenv(name)
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "dump"))
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(tmp_path / "override"))
    return folder


@pytest.fixture(autouse=True)
def fresh_kernels(cache: Path) -> None:
    """Let kernels forget what they were compiled to in earlier tests."""
    import sample_kernels
    from triton.runtime.jit import JITFunction

    for kernel in vars(sample_kernels).values():
        if isinstance(kernel, JITFunction):
            kernel.device_caches.clear()


@pytest.fixture
def device() -> Any:
    """The active driver's device."""
    from triton.runtime import driver

    return driver.active.device


def _host(values: Any) -> Any:
    host = np.asarray(values)
    return host.astype(np.float32) if isinstance(values, list) and host.dtype == np.float64 else host


@pytest.fixture
def array(device: Any) -> Callable[..., Any]:
    """`array(values, dtype)`: a device array of these values, float32 where they are Python's floats."""
    from triton_porting_kit.driver import DeviceArray

    def make(values: Any, dtype: str | None = None) -> DeviceArray:
        return DeviceArray.from_numpy(_host(values), device, dtype)

    return make


PREAMBLE = """
import numpy as np
import triton
import triton.language as tl
from triton.runtime import driver
from triton_porting_kit.driver import DeviceArray
from sample_kernels import *

def array(values, dtype=None):
    host = np.asarray(values)
    host = host.astype(np.float32) if isinstance(values, list) and host.dtype == np.float64 else host
    return DeviceArray.from_numpy(host, driver.active.device, dtype)
"""


class Script:
    """Runs Python in a process of its own, with the sample kernels and `array` at hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, source: str, *, before: str = "") -> list[str]:
        """The command that runs `before`, the imports, and `source`; kernels may be defined in it."""
        path = self.folder / f"script_{len(list(self.folder.glob('script_*.py')))}.py"
        path.write_text(before + PREAMBLE + source)
        return [sys.executable, str(path)]

    def environment(self, **changes: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(HERE), **changes}

    def run(self, source: str, *, before: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run to the end, within a minute, whatever the status."""
        return subprocess.run(
            self.command(source, before=before),
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def __call__(self, source: str, *, before: str = "", **environment: str) -> str:
        """What the script prints; it must succeed."""
        result = self.run(source, before=before, **environment)
        assert result.returncode == 0, f"status {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)
