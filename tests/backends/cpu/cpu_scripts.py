"""Python programs that tests run in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

PREAMBLE = """
import numpy as np
import triton
import triton.language as tl
from triton.runtime import driver
from triton_porting_kit.driver import DeviceArray
from cpu_kernels import *

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
        """Run to the end, whatever the status."""
        return subprocess.run(
            self.command(source, before=before),
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def __call__(self, source: str, *, before: str = "", **environment: str) -> str:
        """What the script prints; it must succeed."""
        result = self.run(source, before=before, **environment)
        assert result.returncode == 0, f"status {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result.stdout
