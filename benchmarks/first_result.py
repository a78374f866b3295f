"""How long a new process takes from its start to the first result of a kernel.

The process is `benchmarks.first_process`. The reference does the same without the kit's stages: their artefacts are
read from files. Beside it stands a process that only imports Triton and NumPy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .figures import Figure, measured, ratio
from .timing import Samples

GROUP, NAME = "first result", "vector add"
COMPILED, CACHED, REFERENCE = "compiled", "cached", "without our stages"
IMPORTS = "imports of Triton and NumPy"
COLD_BAR, WARM_BAR, STAGES_BAR = 0.9, 0.45, 1 / 1.25
RUNS, QUICK_RUNS = 11, 3
ROOT = Path(__file__).resolve().parents[1]
MAIN = ("-m", "benchmarks.first_process")


def first_result_figures(wanted: Callable[[str], Any], quick: bool) -> list[Figure]:
    """The figures if "first result" is wanted: seconds of a process, and its ratio to the reference."""
    if not wanted(GROUP):
        return []
    seconds: dict[str, list[float]] = {COMPILED: [], CACHED: [], REFERENCE: [], IMPORTS: []}
    with tempfile.TemporaryDirectory() as folder:
        cache, kept = Path(folder, "cache"), Path(folder, "kept")
        _process(cache, *MAIN)
        shutil.copytree(_kernel(cache), kept)
        for _ in range(QUICK_RUNS if quick else RUNS):
            for what in seconds:
                if what == IMPORTS:
                    seconds[what].append(
                        _process(cache, "-c", "import time, numpy, triton; print(time.time())")
                    )
                    continue
                if what != CACHED:
                    shutil.rmtree(_kernel(cache))
                seconds[what].append(_process(cache, *MAIN, *[str(kept)] * (what == REFERENCE)))
    found = {what: Samples(tuple(values)) for what, values in seconds.items()}
    bars = {COMPILED: COLD_BAR, CACHED: WARM_BAR}
    return [
        *(measured(samples, GROUP, NAME, what, bar=bars.get(what)) for what, samples in found.items()),
        ratio(found[REFERENCE], found[COMPILED], GROUP, NAME, f"{REFERENCE} / {COMPILED}", 0, STAGES_BAR),
    ]


def _kernel(cache: Path) -> Path:
    (folder,) = (path for path in cache.iterdir() if path.is_dir())
    return folder


def _process(cache: Path, *arguments: str) -> float:
    """Seconds from the start of a Python process to the time that it prints."""
    environment = os.environ | {
        "TRITON_CACHE_DIR": str(cache),
        "TRITON_DEFAULT_BACKEND": "cpu",
        # Modules are compiled once, as when they are installed, wherever that is.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(cache.with_name("bytecode")),
    }
    start = time.time()
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} failed:\n{done.stderr}")
    return float(done.stdout) - start
