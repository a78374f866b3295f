"""Runs a part of the conformance suite's kernels in the interpreter, in a process of its own.

``python interpret_suite.py language PART PARTS`` takes the language checks whose batch is in one of so many parts;
``python interpret_suite.py programs FIRST COUNT`` random programs by their seeds. Prints a JSON object: how many agree
with what the suite expects, and what is wrong about the others.
"""

from __future__ import annotations

import gc
import json
import sys
import warnings
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

from interpreted_backend import interpreting

from triton_porting_kit.conformance import language
from triton_porting_kit.conformance.language import running
from triton_porting_kit.conformance.memory import KitMemory
from triton_porting_kit.conformance.stress.generator import generate
from triton_porting_kit.conformance.stress.launching import Launch, run
from triton_porting_kit.conformance.stress.program import IllConditioned
from triton_porting_kit.driver import Device
from triton_porting_kit.toolchain import compat

Outcome = tuple[str, str]
"""Which kernel, and what is wrong; nothing where it agrees."""


def checks(device: Device, part: int, parts: int) -> Iterator[Outcome]:
    """The language checks of a part."""
    batches: dict[str, list[language.Case]] = {}
    for case in language.cases(compat.release()):
        if zlib.crc32(case.batch.encode()) % parts == part:
            batches.setdefault(case.batch, []).append(case)
    for batch in batches.values():
        for name, error in running.run(batch, KitMemory(device)).items():
            notes = " ".join(getattr(error, "__notes__", ()))
            yield name, "" if error is None else f"{type(error).__name__}: {error} {notes}"


def programs(device: Device, first: int, count: int) -> Iterator[Outcome]:
    """Random programs, but those that no backend is held to."""
    for seed in range(first, first + count):
        try:
            launch = Launch.of(generate(seed))
        except IllConditioned:
            continue
        launch = replace(launch, place="zones")  # arrays of the device, whose bounds the interpreter knows
        try:
            yield str(seed), run(launch, KitMemory(device))[0]
        except Exception as error:
            notes = " ".join(getattr(error, "__notes__", ()))
            yield str(seed), f"{type(error).__name__}: {error} {notes}"


def main(
    what: str, first: int, second: int, running_on: AbstractContextManager[Device] | None = None
) -> None:
    """Run on what `running_on` opens: by default, on the interpreter as it is."""
    outcomes = {"language": checks, "programs": programs}[what]
    agree, differ = 0, {}
    with running_on or interpreting() as device, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, wrong in outcomes(device, first, second):
            if wrong:
                differ[name] = wrong[:2000]
            else:
                agree += 1
        compat.forget_loaded_kernels()  # they are this device's
        gc.collect()
    json.dump({"agree": agree, "differ": differ}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
