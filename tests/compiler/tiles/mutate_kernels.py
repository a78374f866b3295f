"""Runs mutants of all kernels of the conformance suite's level `kernels` on a chip.

``python mutate_kernels.py [--chip NAME] [--only WORD] [--count N] [--part K/N] [--out FILE]``

A kernel is run on all inputs of its family that the suite has for one type, but for those that take long: by a single
core, so that loops and programs follow each other, and then by all cores; in arrays that end where their memory ends,
with all of local memory poisoned. A mutant is found if the compiler or the chip refuses it, or if a bit of a result differs.
The others have, on all inputs, the same results and no hazard: no order of the units that the chip's rules allow gives
anything else. They are *equivalent* if their change was reached, and *not reached* if it was not. ``mutating.py`` has the
kinds of mutants. The exit status is 0 if all were found or are equivalent.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import math
import os
import random
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["VNPU_POISON"] = "1"

from chip_backend import running_on
from mutating import Mutant, mutants
from triton.runtime.jit import JITFunction

from triton_porting_kit import chips
from triton_porting_kit.compiler import link_shared_object, npu_pipeline
from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.batches import try_checks
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.memory import KitMemory
from triton_porting_kit.conformance.public.patience import processor_seconds
from triton_porting_kit.toolchain import compat

KINDS = ("fp16", "fp32", "i32", "i8", "i64")
"""The types to take, the first one that a family has."""

COMPILER, CHIP, RESULT, EQUIVALENT, NOT_REACHED = (
    "by the compiler", "by the chip", "by the result", "equivalent", "not reached",
)  # fmt: skip


FEWEST = 3
"""Programs of a launch: with fewer, nothing that is used in turn is used again. Kernels that Triton specialises for
arguments of 1 have such launches only."""
LONGEST = 1.0
"""Seconds of processor time of a run, here and on the chip; longer ones are left out, also where the machine is idle."""


def one_core(chip: str, folder: str) -> str:
    """The path of the description of a chip with a single core."""
    text = (Path(chips.__file__).parent / f"{chip}.toml").read_text()
    for name in ("clusters", "cores_per_cluster"):
        text = re.sub(rf"^{name} = \d+", f"{name} = 1", text, flags=re.MULTILINE)
    path = Path(folder, f"{chip}.toml")
    path.write_text(text)
    return str(path)


def families() -> dict[str, list[Check]]:
    """The checks of each family of kernels, of one type, the small ones first."""
    found: dict[str, list[Check]] = {}
    for check in catalogue.checks(["kernels"]):
        found.setdefault(check.name.split("/")[1], []).append(check)
    chosen = {}
    for family, checks in found.items():
        kind = next((kind for kind in KINDS if any(c.body.kind == kind for c in checks)), checks[0].body.kind)  # type: ignore[attr-defined]
        chosen[family] = [check for check in checks if check.body.kind == kind]  # type: ignore[attr-defined]
    return chosen


@dataclass
class Placed:
    """A compiled kernel: its text, its binary, the checks that launch it, and the most programs of a launch."""

    text: str
    binary: bytes
    checks: list[Check] = field(default_factory=list)
    programs: int = 0


class Workshop:
    """A chip on which one kernel at a time is replaced."""

    def __init__(self, chip: str) -> None:
        self._chip = chip
        self._later = npu_pipeline(chips.load(chip)).after("placed")
        self._compiled = ""
        self._replaced: dict[bytes, bytes] = {}
        self._running: Check | None = None
        self._read: list[bytes] = []
        self.kernels: dict[bytes, Placed] = {}
        self._too_long: set[str] = set()
        self._results: dict[str, list[bytes] | None] = {}

    def __enter__(self) -> Workshop:
        for kernel in [found for found in gc.get_objects() if isinstance(found, JITFunction)]:
            kernel.device_caches.clear()  # they are another chip's
        self._context = running_on(self._chip, self._note)
        self._device: Any = self._context.__enter__()
        self._session = Session(f"chip-{self._chip}", KitMemory(self._device))
        self._watch(self._device)
        read = GuardedArray.read

        def noted(array: GuardedArray) -> Any:
            values = read(array)
            self._read.append(hashlib.sha256(values.tobytes()).digest())
            return values

        GuardedArray.read, GuardedArray.guard = noted, 0  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        gc.collect()
        self._context.__exit__(None, None, None)

    def _watch(self, device: Any) -> None:
        """Let the device load what takes a kernel's place, and note how many programs it launches."""
        load, get, launch = device.load_module, device.get_function, device.launch
        loaded: dict[int, bytes] = {}

        def load_module(binary: bytes, name: str) -> int:
            module = int(load(self._loaded(binary), name))
            loaded[module] = binary
            return module

        def get_function(module: int, name: str) -> int:
            function = int(get(module, name))
            loaded[function] = loaded[module]
            return function

        def launched(function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
            kernel = self.kernels.get(loaded[function])
            if kernel is not None:
                kernel.programs = max(kernel.programs, math.prod(grid))
            launch(function, grid, stream, args)

        device.load_module, device.get_function, device.launch = load_module, get_function, launched

    def _note(self, text: str) -> str:
        self._compiled = text
        return text

    def _loaded(self, binary: bytes) -> bytes:
        """What is loaded for a binary of Triton's."""
        if self._compiled:
            self.kernels.setdefault(binary, Placed(self._compiled, binary))
            self._compiled = ""
        kernel = self.kernels.get(binary)
        if kernel is not None and self._running is not None and self._running not in kernel.checks:
            kernel.checks.append(self._running)
        return self._replaced.get(binary, binary)

    def _run(self, check: Check) -> tuple[str, list[bytes]]:
        """What is wrong about a check, and its results."""
        self._running, self._read = check, []
        compat.forget_loaded_kernels()
        (record,) = try_checks([check], self._session)
        return "" if str(record.status) == "pass" else record.message or str(record.status), self._read

    def begin(self, checks: Sequence[Check]) -> list[Placed]:
        """Run checks as they are, twice. Returns their kernels."""
        known = set(self.kernels)
        for check in checks:
            wrong, results = self._run(check)
            if wrong:
                raise AssertionError(f"{check.name}: {wrong}")
            start = processor_seconds(os.getpid())
            again, same = self._run(check)
            assert not again
            if processor_seconds(os.getpid()) - start > LONGEST:
                self._too_long.add(check.name)
            # Cores that add by atomics round in any order: then only the check's own tolerance holds.
            self._results[check.name] = results if same == results else None
        return [kernel for binary, kernel in self.kernels.items() if binary not in known]

    def _binary(self, text: str) -> bytes:
        metadata: dict[str, Any] = {}
        made = self._later.run(text, metadata)
        return link_shared_object(made[self._later.stages[-1].name], f"{metadata['name']}.so")

    def control(self, kernel: Placed) -> None:
        """Raise if a kernel that is not changed fails."""
        wrong, _ = self._run(kernel.checks[0])
        if wrong:
            raise AssertionError(f"{kernel.checks[0].name}, which is not changed: {wrong}")

    def judge(self, kernel: Placed, mutant: Mutant) -> tuple[str, str]:
        """What becomes of a mutant, and the message by which it is found."""
        try:
            binary = self._binary(mutant.text)
        except Exception as error:
            return COMPILER, str(error)
        checks = [check for check in kernel.checks if check.name not in self._too_long] or kernel.checks[:1]
        for check in checks:
            wrong = self._replacing(kernel, binary, check)
            if wrong:
                return wrong
        if not mutant.trap:
            return EQUIVALENT, ""
        trap = self._binary(mutant.trap)
        reached = any(self._replacing(kernel, trap, check) for check in checks)
        return (EQUIVALENT if reached else NOT_REACHED), ""

    def _replacing(self, kernel: Placed, binary: bytes, check: Check) -> tuple[str, str] | None:
        """How a check finds that a kernel was replaced; None if it does not."""
        self._replaced = {kernel.binary: binary}
        try:
            wrong, results = self._run(check)
        finally:
            self._replaced = {}
        if wrong:
            if "DeviceLost" in wrong:
                self._device.reset()
            return (CHIP if "LaunchError" in wrong or "DeviceLost" in wrong else RESULT), wrong
        if self._results[check.name] not in (None, results):
            return RESULT, "bits differ"
        return None


Outcome = tuple[str, Mutant, str, str]
"""Family, mutant, what becomes of it, and the message by which it is found."""


def outcomes(chip: str, only: str, count: int, part: int, parts: int) -> Iterator[Outcome]:
    """The outcomes of all chosen mutants."""
    chosen = {
        family: checks
        for number, (family, checks) in enumerate(families().items())
        if number % parts == part and only in family
    }
    left: list[tuple[str, Placed, Mutant, str]] = []
    with tempfile.TemporaryDirectory() as folder, Workshop(one_core(chip, folder)) as workshop:
        everything = []
        for family, checks in chosen.items():
            kernels = [kernel for kernel in workshop.begin(checks) if kernel.programs >= FEWEST]
            everything += [(family, kernel, mutant) for kernel in kernels for mutant in mutants(kernel.text)]
        if count:
            everything = random.Random(0).sample(everything, min(count, len(everything)))
        print(f"{len(everything)} mutants", file=sys.stderr, flush=True)
        for number, (family, kernel, mutant) in enumerate(everything):
            found, message = workshop.judge(kernel, mutant)
            if found in (EQUIVALENT, NOT_REACHED):
                left.append((family, kernel, mutant, found))
            else:
                yield family, mutant, found, message
            if number % 10 == 0:
                workshop.control(kernel)
    yield from _with_all_cores(chip, chosen, left)


def _with_all_cores(
    chip: str, chosen: dict[str, list[Check]], left: list[tuple[str, Placed, Mutant, str]]
) -> Iterator[Outcome]:
    """The outcomes of what a single core did not find: now the last program is the first one of a core."""
    with Workshop(chip) as workshop:
        for family in dict.fromkeys(family for family, *_ in left):
            kernels = {kernel.text: kernel for kernel in workshop.begin(chosen[family])}
            for other, alone, mutant, before in left:
                if other != family:
                    continue
                kernel = kernels.get(alone.text)
                found, message = (before, "") if kernel is None else workshop.judge(kernel, mutant)
                reached = EQUIVALENT in (found, before)
                yield family, mutant, EQUIVALENT if found == NOT_REACHED and reached else found, message


def main() -> int:
    """Run the mutants and print the sums. Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chip", default="n1")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--count", type=int, default=0, help="a sample of so many mutants")
    parser.add_argument("--part", default="0/1", metavar="K/N", help="every N-th family")
    parser.add_argument("--out", type=Path, metavar="FILE")
    given = parser.parse_args()
    part, parts = (int(number) for number in given.part.split("/"))
    warnings.simplefilter("ignore")
    sums: dict[str, Counter[str]] = {}
    rows = []
    for family, mutant, outcome, message in outcomes(given.chip, given.only, given.count, part, parts):
        sums.setdefault(mutant.kind, Counter())[outcome] += 1
        rows.append([family, mutant.kind, mutant.what, outcome, message[:500]])
        if outcome in (EQUIVALENT, NOT_REACHED):
            print(f"{outcome}: {family}, {mutant.kind} of line {mutant.what}", flush=True)
        if given.out:
            given.out.write_text(json.dumps(rows, indent=0))
    for kind, counts in sums.items():
        print(f"{kind}: {sum(counts.values())} mutants; {', '.join(f'{n} {o}' for o, n in counts.items())}")
    return int(any(counts[NOT_REACHED] for counts in sums.values()))


if __name__ == "__main__":
    sys.exit(main())
