"""A share of the table of operations, and the kit's own kernels, on a level of instructions: a program for one level.

Called as ``language_level.py LEVEL PART PARTS``, it runs every PARTS-th batch of cases of the level `language`, all of
them for ``0 1``, and prints JSON: how many cases there were, what was wrong, and what keeps the level from running here,
where they were only compiled. Levels of this machine's architecture run on the CPU backend as it is, others in a `Guest`.
"""

from __future__ import annotations

import json
import os
import sys
import zlib

from guest import cannot_run
from guest_device import use
from triton.runtime import driver

from triton_porting_kit.compiler import ISA_LEVELS
from triton_porting_kit.conformance.arrays import WrongResult
from triton_porting_kit.conformance.language import cases, running
from triton_porting_kit.conformance.language.table import Case
from triton_porting_kit.conformance.memory import KitMemory
from triton_porting_kit.kernels import cases as kernels
from triton_porting_kit.kernels.matmul import DEFAULT_TILES
from triton_porting_kit.kernels.places import DevicePlace
from triton_porting_kit.toolchain import compat


def batches(part: int, parts: int) -> dict[str, list[Case]]:
    """One in `parts` batches of the table."""
    found: dict[str, list[Case]] = {}
    for case in cases(compat.release()):
        if zlib.crc32(case.batch.encode()) % parts == part:
            found.setdefault(case.batch, []).append(case)
    return found


def own_kernels() -> list[kernels.Case]:
    """Products, softmax and sorting: what a level's registers and masks matter most to."""
    return [
        *(kernels.matmul_case(33, 65, 129, dtype, tiles=DEFAULT_TILES) for dtype in ("float32", "bfloat16")),
        kernels.vector_add_case(1823, "float16"),
        kernels.softmax_case(5, 781, "float32"),
        kernels.sort_rows_case(3, 200, "float32"),
        kernels.layer_norm_case(3, 100, "float16"),
    ]


def main() -> None:
    level = ISA_LEVELS[sys.argv[1]]
    lacks = cannot_run(level)
    if level.missing():
        device = use(level, runs=not lacks)
    else:
        os.environ.update(level.environment())
        device = driver.active.device
    findings, count = [], 0
    for some in batches(int(sys.argv[2]), int(sys.argv[3])).values():
        for name, error in running.run(some, KitMemory(device)).items():
            count += 1
            if error is not None and not (lacks and isinstance(error, WrongResult)):
                findings.append(f"{name}: {type(error).__name__}: {error}")
    for case in own_kernels():
        count += 1
        wrong = [deviation for deviation in case.check(DevicePlace(device)) if not deviation.ok]
        findings += [f"{case.id}: {deviation}" for deviation in wrong if not lacks]
    print(json.dumps({"compiled": count, "run": 0 if lacks else count, "lacks": lacks, "findings": findings}))


if __name__ == "__main__":
    main()
