"""Compares what compiling for the chip n1 takes with what compiling for the CPU takes: the CPU time of all stages.

``python -m benchmarks.chip.compiling [--runs N] [--only WORD]`` compiles the kit's kernels by both pipelines in turn,
in one process, and takes the fastest run of each.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from triton import knobs

from benchmarks.compiling import compiled, forget, fresh_cache
from triton_porting_kit import chips
from triton_porting_kit.compiler import CpuTarget, Pipeline, cpu_pipeline, npu_pipeline
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.kernels.places import DevicePlace

from .virtual import tests

CHIP = "n1"
RUNS = 5


def launches(device: Any) -> Iterator[tuple[str, Callable[[], Any], tuple[Any, ...]]]:
    """The name of what is compiled, a launch that compiles it, and its kernels."""
    place = DevicePlace(device)
    for name, case, kernels in compiled():
        arrays = [place.put(operand) for operand in case.operands()]
        yield name, partial(case.launch, arrays), kernels
    ours = tests("chip_kernels")

    def halves(*shape: int) -> DeviceArray:
        return DeviceArray.from_numpy(np.zeros(shape, np.float16), device)

    matrices = halves(128, 256), halves(256, 256), halves(128, 256)
    sizes = {"BM": 128, "BN": 256, "BK": 64}
    multiply = partial(ours.matmul[(1,)], *matrices, 128, 256, 256, 256, 256, 256, **sizes)
    yield "matmul fp16", multiply, (ours.matmul,)
    for width, causal in ((64, False), (128, False), (64, True)):
        arrays = [halves(1, 128, width) for _ in range(4)]
        name = f"{'causal ' if causal else ''}attention fp16 {width}"
        given = {"D": width, "BM": 64, "BN": 128, "CAUSAL": causal}
        yield name, partial(ours.attention[(2, 1)], *arrays, 0.1, 128, **given), (ours.attention,)


def texts(device: Any, word: str) -> Iterator[tuple[str, str]]:
    """The names of kernels that contain a word, and their TTIR."""
    for name, launch, kernels in launches(device):
        if word not in name:
            continue
        found: list[str] = []

        def listen(*, metadata_group: dict[str, str], found: list[str] = found, **_: Any) -> None:
            found += [
                Path(path).read_text() for file, path in metadata_group.items() if file.endswith(".ttir")
            ]

        with fresh_cache():
            forget(kernels)
            knobs.compilation.listener = listen
            try:
                launch()
            finally:
                knobs.compilation.listener = None
        for number, text in enumerate(found, 1):
            yield name if number == 1 else f"{name} {number}", text


def seconds(pipeline: Pipeline, text: str) -> float:
    """The CPU time of all stages on a kernel."""
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    gc.collect()
    gc.disable()
    start = time.thread_time()
    pipeline.run(module, {})
    taken = time.thread_time() - start
    gc.enable()
    return taken


def compared(text: str, runs: int) -> tuple[float, float]:
    """The fastest run of the CPU's pipeline and of the chip's, in seconds."""
    pipelines = cpu_pipeline(CpuTarget.host()), npu_pipeline(chips.load(CHIP))
    found = [[seconds(pipeline, text) for pipeline in pipelines] for _ in range(1 + runs)]
    cpu, chip = (min(each) for each in zip(*found[1:], strict=True))  # the first run also loads modules
    return cpu, chip


def main() -> None:
    """Print the time of each kernel, and the mean of the ratios."""
    from triton.runtime import driver

    parser = argparse.ArgumentParser(prog="python -m benchmarks.chip.compiling", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each pipeline")
    parser.add_argument("--only", default="", metavar="WORD", help="kernels whose names contain it")
    given = parser.parse_args()
    ratios = []
    for name, text in texts(driver.active.device, given.only):
        cpu, chip = compared(text, given.runs)
        ratios.append(chip / cpu)
        print(f"{name:26} CPU {cpu * 1e3:6.1f} ms, chip {chip * 1e3:6.1f} ms: {chip / cpu:.2f}", flush=True)
    if not ratios:
        sys.exit(f"no kernel's name contains {given.only!r}")
    print(f"mean of {len(ratios)} kernels: {np.mean(ratios):.2f}, at most {max(ratios):.2f}")


if __name__ == "__main__":
    main()
