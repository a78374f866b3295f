"""Figures that need a process of their own: peak memory of a large matmul, and Triton's interpreter.

`python -m benchmarks.apart memory` and `... interpreter` print JSON; `apart_figures` runs them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .figures import Figure, measured

MEMORY_SIZE, QUICK_MEMORY_SIZE = 4096, 1024
MEMORY_BAR, INTERPRETER_BAR = 8 << 20, 1000.0
INTERPRETED_SIZE, INTERPRETED_TILES = 256, (32, 32, 32, 8)


def apart_figures(threads: int, wanted: Callable[[str], Any], quick: bool) -> list[Figure]:
    """The figures whose names are wanted: "memory matmul" and "interpreter matmul"."""
    figures = []
    size = QUICK_MEMORY_SIZE if quick else MEMORY_SIZE
    if wanted("memory matmul"):
        for dtype, grown in _ask("memory", str(size)).items():
            figures.append(
                measured(
                    grown,
                    "memory",
                    f"matmul {dtype} {size}",
                    "beyond the operands",
                    threads,
                    unit="B",
                    bar=MEMORY_BAR,
                )
            )
    if wanted("interpreter matmul"):
        ours = _ask("interpreter", "0")["seconds"]
        theirs = _ask("interpreter", "1", TRITON_INTERPRET="1")["seconds"]
        name = f"matmul fp32 {INTERPRETED_SIZE}"
        figures += [
            measured(ours, "interpreter", name, "ours", threads),
            measured(theirs, "interpreter", name, "Triton's interpreter", threads),
            measured(
                theirs / ours,
                "interpreter",
                name,
                "interpreter / ours",
                threads,
                unit="x",
                less=False,
                bar=INTERPRETER_BAR,
            ),
        ]
    return figures


def _ask(*arguments: str, **environment: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.apart", *arguments],
        env=os.environ | environment,
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"benchmarks.apart {' '.join(arguments)} failed:\n{done.stderr}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _status(field: str) -> int:
    """A size in bytes of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) << 10
    raise RuntimeError(f"/proc/self/status has no {field}")


def memory(size: int) -> dict[str, float]:
    """How far the process grows beyond operands and result for a matmul of size³, scratch of all threads included."""
    import numpy as np
    from triton.runtime import driver

    from triton_porting_kit.kernels.matmul import DEFAULT_TILES, matmul, matmul_kernel
    from triton_porting_kit.kernels.places import DevicePlace, Operand

    place = DevicePlace(driver.active.device)
    grown = {}
    for dtype in ("float32", "bfloat16"):
        # Compiled and linked before: the sizes are divisible by 16, as those of the large one.
        small = place.put(Operand(np.ones((64, 64)), dtype))
        compiled = matmul_kernel[(1,)](
            *(small, small, small), *(64,) * 3, *(64, 1) * 3, LEAKY_RELU=False, **DEFAULT_TILES.constexprs()
        )
        a = place.put(Operand(np.ones((size, size), np.float32), dtype))
        out = place.put(Operand(np.ones((size, size), np.float32), dtype))  # with all its pages
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
        before = _status("VmRSS")
        matmul(a, a, tiles=DEFAULT_TILES, out=out)
        place.synchronize()
        # What threads keep for the next kernel is there since the small one.
        scratch = getattr(compiled.metadata, "scratch_bytes", 0) * int(os.environ.get("TPK_NUM_THREADS", "1"))
        grown[dtype] = float(max(0, _status("VmHWM") - before) + scratch)
    return grown


def interpreter(interpreted: bool) -> dict[str, float]:
    """Seconds of one matmul, by the interpreter or compiled; the least of a few runs."""
    from triton_porting_kit.kernels import cases
    from triton_porting_kit.kernels.matmul import Tiles
    from triton_porting_kit.kernels.places import TorchPlace

    n = INTERPRETED_SIZE
    case = cases.matmul_case(n, n, n, "float32", tiles=Tiles(*INTERPRETED_TILES))
    arrays = [TorchPlace().put(operand) for operand in case.operands()]
    seconds = []
    for _ in range(2 if interpreted else 50):
        start = time.perf_counter()
        case.launch(arrays)
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds)}


if __name__ == "__main__":
    what, argument = sys.argv[1:]
    print(json.dumps(memory(int(argument)) if what == "memory" else interpreter(argument == "1")))
