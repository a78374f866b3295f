"""How long a new process takes from its start to the first result of a kernel: `python -m benchmarks.first_result`.

It imports Triton, makes arrays, compiles one small kernel or finds it in the cache, runs it, and reads the result. The
reference does the same without the kit's stages: their artefacts are read from files.
"""

from __future__ import annotations

import json
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
COLD_BAR, WARM_BAR, STAGES_BAR = 0.9, 0.45, 1 / 1.25
RUNS, QUICK_RUNS = 11, 3
ROOT = Path(__file__).resolve().parents[1]


def first_result_figures(wanted: Callable[[str], Any], quick: bool) -> list[Figure]:
    """The figures if "first result" is wanted: seconds of a process, and its ratio to the reference."""
    if not wanted(GROUP):
        return []
    seconds: dict[str, list[float]] = {COMPILED: [], CACHED: [], REFERENCE: []}
    with tempfile.TemporaryDirectory() as folder:
        cache, kept = Path(folder, "cache"), Path(folder, "kept")
        _process(cache)
        shutil.copytree(_kernel(cache), kept)
        for _ in range(QUICK_RUNS if quick else RUNS):
            for what in seconds:
                if what != CACHED:
                    shutil.rmtree(_kernel(cache))
                seconds[what].append(_process(cache, *[str(kept)] * (what == REFERENCE)))
    found = {what: Samples(tuple(values)) for what, values in seconds.items()}
    bars = {COMPILED: COLD_BAR, CACHED: WARM_BAR, REFERENCE: None}
    return [
        *(measured(samples, GROUP, NAME, what, bar=bars[what]) for what, samples in found.items()),
        ratio(found[REFERENCE], found[COMPILED], GROUP, NAME, f"{REFERENCE} / {COMPILED}", 0, STAGES_BAR),
    ]


def _kernel(cache: Path) -> Path:
    (folder,) = (path for path in cache.iterdir() if path.is_dir())
    return folder


def _process(cache: Path, *arguments: str) -> float:
    """Seconds from the start of a process to its result."""
    environment = os.environ | {
        "TRITON_CACHE_DIR": str(cache),
        "TRITON_DEFAULT_BACKEND": "cpu",
        # Modules are compiled once, as when they are installed, wherever that is.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(cache.with_name("bytecode")),
    }
    start = time.time()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_result", *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"benchmarks.first_result {' '.join(arguments)} failed:\n{done.stderr}")
    return float(done.stdout) - start


def read_artefacts(folder: Path) -> None:
    """Let the CPU backend read the artefacts of its stages from a kernel's cache folder."""
    from triton_porting_kit.backends.cpu.compiler import CPUBackend

    (metadata_file,) = (path for path in folder.glob("*.json") if not path.name.startswith("__grp__"))
    known = json.loads(metadata_file.read_text(encoding="utf-8"))
    name = known["name"]

    def add_stages(self: Any, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        for stage in self.pipeline(options).names:
            path = folder / f"{name}.{stage}"
            content: Any = path.read_bytes() if stage == self.binary_ext else path.read_text(encoding="utf-8")

            def run(source: Any, metadata: dict[str, Any], content: Any = content) -> Any:
                metadata.update({key: known[key] for key in known.keys() - metadata.keys()})
                return content

            stages[stage] = run

    CPUBackend.add_stages = add_stages  # type: ignore[method-assign]


def main() -> None:
    """Print the time of the first result. With an argument, artefacts are read from that folder."""
    import numpy as np
    from triton.runtime import driver

    from triton_porting_kit.driver import DeviceArray
    from triton_porting_kit.kernels.vector_add import vector_add_kernel

    if len(sys.argv) > 1:
        read_artefacts(Path(sys.argv[1]))
    device = driver.active.device
    x, y, out = (
        DeviceArray.from_numpy(np.full(1000, value, np.float32), device=device) for value in (1, 2, 0)
    )
    vector_add_kernel[(8,)](x, y, out, 1000, BLOCK=128)
    result = out.numpy()
    end = time.time()
    if not (result == 3).all():
        raise RuntimeError(f"the sum of 1 and 2 is {result}")
    print(end)


if __name__ == "__main__":
    main()
