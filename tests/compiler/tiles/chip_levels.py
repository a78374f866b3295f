"""Runs whole levels of the conformance suite on the virtual NPU as a chip, in many processes.

``python chip_levels.py CHIP LEVEL[,LEVEL] [--parts FIRST-LAST/PARTS] [--processes N] [--seconds S] [--out FILE]``

Each part is a process (``chip_suite.py``). Prints a line for each part with failures, and at the end the sums. What was
not begun when the time is over is listed, so that another call can go on there. The exit status is 0 only if all chosen
parts ran and nothing failed. ``--out`` gets all of it as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def run_part(chip: str, level: str, part: int, parts: int, end: float) -> dict[str, Any]:
    """The result of one part: `agree` and `differ`, or `error`, or `late` if it did not end in time."""
    left = end - time.monotonic()
    found: dict[str, Any] = {"level": level, "part": part}
    if left < 1:
        return found | {"late": True}
    command = [sys.executable, str(HERE / "chip_suite.py"), chip, level, str(part), str(parts)]
    begun = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=left)
    except subprocess.TimeoutExpired:
        return found | {"late": True}
    found["seconds"] = round(time.monotonic() - begun, 1)
    if done.returncode:
        return found | {"error": f"exit status {done.returncode}\n{done.stderr[-2000:]}"}
    return found | json.loads(done.stdout.splitlines()[-1])


def chosen(text: str) -> tuple[range, int]:
    """Parts and their number, of ``FIRST-LAST/PARTS``."""
    which, _, parts = text.partition("/")
    first, _, last = which.partition("-")
    return range(int(first), int(last or first) + 1), int(parts)


def show(result: dict[str, Any]) -> None:
    """Print what is wrong in a part."""
    if "error" in result:
        print(f"{result['level']} part {result['part']}: {result['error']}", flush=True)
    for name, wrong in result.get("differ", {}).items():
        print(f"{name}: {wrong[:300]}", flush=True)


def main() -> int:
    """Run the chosen parts. Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("chip")
    parser.add_argument("levels")
    parser.add_argument("--parts", type=chosen, default=chosen("0-159/160"))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=86400.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    numbers, parts = given.parts
    end = time.monotonic() + given.seconds
    results = []
    with ThreadPoolExecutor(given.processes) as pool:
        waiting = [
            pool.submit(run_part, given.chip, level, number, parts, end)
            for level in given.levels.split(",")
            for number in numbers
        ]
        for future in waiting:
            results.append(future.result())
            show(results[-1])
            if given.out:
                given.out.write_text(json.dumps(results, indent=1))
    late = [f"{result['level']}:{result['part']}" for result in results if "late" in result]
    passed = sum(result.get("agree", 0) for result in results)
    failed = sum(len(result.get("differ", {})) for result in results)
    errors = sum("error" in result for result in results)
    print(f"{given.chip}: {passed} checks passed, {failed} failed, {errors} parts crashed, {len(late)} late")
    if late:
        print("late:", " ".join(late))
    return int(bool(failed or errors or late))


if __name__ == "__main__":
    sys.exit(main())
