"""Compares `compiler.fitting.fit` with compiling for real, over configurations of matmul, attention and softmax.

``python fits_agree.py [--chip NAME] [--part K/N] [--count N]``: all configurations, every N-th of them, or a sample. Both
begin with the structured form; compiling goes on to an object, and its plan must be the one that `fit` has found. The
exit status is 0 only if they agree on every one.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import chip_kernels
from triton.runtime.errors import OutOfResources

from triton_porting_kit import chips
from triton_porting_kit.cli.compile import structured
from triton_porting_kit.compiler import artefacts, npu_pipeline
from triton_porting_kit.compiler.fitting import fit
from triton_porting_kit.compiler.tiles.errors import table
from triton_porting_kit.compiler.tiles.place import placed_plan
from triton_porting_kit.kernels.softmax import softmax_kernel

CHIPS = ("n1", "ascend910b", "single")
TILES = (16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Configuration:
    """A kernel of `chip_kernels`, or the kit's softmax; the types of its arguments, its constants, and `num_stages`."""

    kernel: str
    signature: str
    constants: tuple[str, ...]
    stages: int
    chip: str


def configurations(names: tuple[str, ...]) -> Iterator[Configuration]:
    """All configurations for some chips."""
    for chip, stages, element in itertools.product(names, (1, 2), ("fp16", "fp32")):
        for sizes in itertools.product(TILES, TILES, TILES):
            constants = tuple(f"{name}={size}" for name, size in zip(("BM", "BN", "BK"), sizes, strict=True))
            signature = f"{', '.join([f'*{element}:16'] * 3)}, i32, i32, i32, i32:16, i32:16, i32:16"
            yield Configuration("matmul", signature, constants, stages, chip)
        for block in (1 << power for power in range(5, 20)):
            signature = f"*{element}:16, *{element}:16, i32:16, i32:16, i32"
            yield Configuration("softmax", signature, (f"BLOCK={block}",), stages, chip)
        if element == "fp32":
            continue
        for bm, bn, d, causal in itertools.product(TILES, TILES, (32, 64, 128), (True, False)):
            constants = (f"BM={bm}", f"BN={bn}", f"D={d}", f"CAUSAL={causal}")
            yield Configuration(
                "attention", f"{', '.join(['*fp16:16'] * 4)}, fp32, i32:16", constants, stages, chip
            )


def buffers(lines: list[str]) -> list[list[str]]:
    """The rows of a table without the last column: announcements change the numbers of operations."""
    return sorted(line.split()[:-1] for line in lines)


def compared(configuration: Configuration) -> tuple[str, str, float, float]:
    """What `fit` says, where compiling differs, and the seconds of both."""
    kernel: Any = getattr(chip_kernels, configuration.kernel, softmax_kernel)
    chip = chips.load(configuration.chip)
    form = structured(
        kernel, configuration.signature, configuration.constants, sys.modules[kernel.fn.__module__]
    )
    times = [time.process_time()]
    planned = fit(form, chip, num_stages=configuration.stages)
    times.append(time.process_time())
    try:
        made = npu_pipeline(chip, num_stages=configuration.stages).after("structured").run(form, {})
        assert len(made["obj"]) > 100
        found, text = True, ""
    except OutOfResources as error:
        found, text = False, str(error)
    times.append(time.process_time())
    differs = ""
    if found != planned.fits:
        differs = f"fit says {planned.fits}, and compiling {found}: {text or planned.text}"
    elif not found and text != planned.text:
        differs = f"other errors:\n{planned.text}\n{text}"
    elif found:
        plan = table(placed_plan(artefacts.parse_structured(str(made["placed"]))))
        if buffers(planned.text.splitlines()[1:]) != buffers(plan):
            differs = f"other plans:\n{planned.text}\n" + "\n".join(plan)
    return ("fits" if planned.fits else "does not fit"), differs, times[1] - times[0], times[2] - times[1]


def main() -> int:
    """Compare them and print the sums. Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chip", choices=CHIPS)
    parser.add_argument("--part", default="0/1", metavar="K/N")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    part, parts = (int(number) for number in given.part.split("/"))
    chosen = list(configurations((given.chip,) if given.chip else CHIPS))[part::parts]
    if given.count:
        chosen = random.Random(0).sample(chosen, min(given.count, len(chosen)))
    sums: Counter[str] = Counter()
    differing, fitting, compiling = 0, 0.0, 0.0
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for configuration, (verdict, differs, own, real) in zip(
            chosen, pool.imap(compared, chosen, chunksize=4), strict=True
        ):
            sums[f"{configuration.kernel} on {configuration.chip} {verdict}"] += 1
            fitting, compiling = fitting + own, compiling + real
            if differs:
                differing += 1
                print(f"{configuration}: {differs}", flush=True)
    for what, number in sorted(sums.items()):
        print(f"{what}: {number}")
    print(
        f"{len(chosen)} configurations, {differing} differ; {fitting:.0f} s of planning, {compiling:.0f} s of compiling"
    )
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
