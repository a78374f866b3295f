"""Runs a part of the levels of the conformance suite on the virtual NPU as a chip, in a process of its own.

``python chip_suite.py CHIP LEVEL PART PARTS`` takes the checks of `language` or `kernels` whose batch, or name, is in one
of so many parts. The last line that it prints is a JSON object: how many passed, and what is wrong about the others.
``chip_levels.py`` runs all parts.
"""

from __future__ import annotations

import gc
import json
import sys
import warnings
import zlib
from collections.abc import Iterator

from chip_backend import running_on

from triton_porting_kit.conformance import batches, catalogue
from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.memory import KitMemory
from triton_porting_kit.driver import Device
from triton_porting_kit.toolchain import compat


def outcomes(chip: str, device: Device, level: str, part: int, parts: int) -> Iterator[tuple[str, str]]:
    """The checks of a part, and what is wrong about each; nothing where it passes."""
    session = Session(f"chip-{chip}", KitMemory(device))
    mine = [
        check
        for check in catalogue.checks([level])
        if zlib.crc32((check.batch or check.name).encode()) % parts == part
    ]
    mine.sort(key=lambda check: check.batch)
    for record in batches.try_checks(mine, session):
        yield record.name, "" if str(record.status) == "pass" else record.message or str(record.status)


def main(chip: str, level: str, part: int, parts: int) -> None:
    """Run a part and print what came of it."""
    agree, differ = 0, {}
    with running_on(chip) as device, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, wrong in outcomes(chip, device, level, part, parts):
            if wrong:
                differ[name] = wrong[:2000]
            else:
                agree += 1
        compat.forget_loaded_kernels()  # they are this device's
        gc.collect()
    print("\n" + json.dumps({"agree": agree, "differ": differ}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
