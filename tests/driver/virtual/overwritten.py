"""Run by a test: a chip whose kernels write to the region that it shares with its library, case by case.

``python overwritten.py KERNELS CASES``: the shared objects of kernels.c and overwrites.cpp in one folder, and a JSON
list of ``[part, index, pattern, seed, nanoseconds]``. Prints what each came to, as a line.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from chips import Chip, Refused

SIZE = 600_000
DATA = bytes(range(251)) * (SIZE // 251 + 1)
HONEST = {"DEVICE_LOST", "COPY_FAILED"}
"""What a call may say of damage. A copy whose bytes were hit in a slot says so."""
LIMIT = 60.0
"""Seconds after which a call counts as a hang, on a busy machine, too."""
ONE = (1, 1, 1)


class Wrong(Exception):
    """A call came to something that is neither right nor honest."""


def attempt(name: str, body: Callable[[], object]) -> bool:
    """Whether it went well; raises if it took too long, or said what is not so."""
    begin = time.monotonic()
    try:
        body()
        refused = None
    except Refused as error:
        refused = error
    if (taken := time.monotonic() - begin) > LIMIT:
        raise Wrong(f"{name} took {taken:.1f} s")
    if refused is not None and refused.status not in HONEST:
        raise Wrong(f"{name}: {refused}")
    return refused is None


def expect(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise Wrong(f"{what} is wrong")


def run(folder: Path, chip: Chip, case: list[int]) -> str:
    overwrites = chip.symbol(chip.load((folder / "overwrites.so").read_bytes()), "overwrites")
    kernels = chip.load((folder / "kernels.so").read_bytes())
    advance, fails = chip.symbol(kernels, "advance"), chip.symbol(kernels, "fails")
    memory, counts, other = chip.array(DATA[:SIZE]), chip.array(bytes(64)), chip.queue()
    start, end = chip.event(), chip.event()
    chip.event_record(start, other)
    chip.synchronize()  # queues do not wait for each other

    def elapses() -> None:
        chip.event_record(end, other)
        chip.event_synchronize(end)
        if not 0 <= chip.elapsed(start, end) < 60_000:
            raise Wrong("elapsed time is wrong")

    def computes() -> None:
        chip.fill(counts, 0, 64, queue=other)
        chip.launch(advance, (8, 1, 1), counts, 1, queue=other)
        chip.queue_wait(0, end)
        found = chip.read(counts, 64, queue=other)
        expect(found, b"".join(i.to_bytes(8, "little") for i in range(8)), "the result of a kernel")

    def fails_as_it_should() -> None:
        chip.launch(fails, ONE, 0, queue=other)
        try:
            chip.queue_synchronize(other)
        except Refused as refused:
            if refused.status != "LAUNCH_FAILED":
                raise
            if "failed with code 7" not in refused.text:
                raise Wrong(f"the failure is reported as {refused.text!r}") from None
        else:
            raise Wrong("a failure is lost")

    def writes() -> None:
        chip.write(memory, DATA[1 : SIZE + 1], queue=other)
        expect(chip.read(memory, SIZE, queue=other), DATA[1 : SIZE + 1], "what was written")

    steps: dict[str, Callable[[], object]] = {
        "launch": lambda: chip.launch(overwrites, ONE, *case),
        "read": lambda: expect(chip.read(memory, SIZE, queue=other), DATA[:SIZE], "what was read"),
        "compute": computes,
        "event": elapses,
        "failure": fails_as_it_should,
        "write": writes,
        "load": lambda: chip.symbol(chip.load((folder / "kernels.so").read_bytes()), "slow"),
        "queue": lambda: chip.queue(),
        "counters": lambda: chip.counted(),
        "synchronize": lambda: chip.synchronize(),
    }
    went = [attempt(name, step) for name, step in steps.items()]
    try:
        chip.process()
    except Refused:
        return "lost"
    return "right" if all(went) else "refused"


def main() -> None:
    folder = Path(sys.argv[1])
    with Chip(cores=2, memory_bytes=64 << 20, watchdog_ms=3000, queue_depth=4) as chip:
        for case in json.loads(sys.argv[2]):
            begin = time.monotonic()
            try:
                print(case, run(folder, chip, case), f"{time.monotonic() - begin:.2f}", flush=True)
            except (Wrong, Refused) as error:
                print(case, "WRONG:", error, flush=True)
            chip.reset()


if __name__ == "__main__":
    main()
