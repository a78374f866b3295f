"""Many barriers and all-reduces of processes whose puts and notifications are delayed at random.

``python -m triton_porting_kit.conformance.distributed.endurance --runs 10000`` exits with 1 if one of them hangs, is
passed early or gives a wrong sum. The delays of a rank are determined by the seed; when the system runs the processes
is not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from triton_porting_kit.conformance.distributed import collectives, ranks
from triton_porting_kit.conformance.distributed.workers import Failed, Workers

_LOT = 1000
"""Runs between two lines of output."""
_ELEMENTS = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run many barriers and all-reduces with random delays.")
    parser.add_argument("--runs", type=int, default=10_000, help="how many of each (default: 10000)")
    parser.add_argument("--ranks", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="of the delays; not 0 (default: 1)")
    parser.add_argument("--backend", default="cpu", help="default: cpu")
    given = parser.parse_args(arguments)
    wrong = 0
    workers = Workers(given.ranks, backend=given.backend, environment={"TPK_RANK_DELAYS": str(given.seed)})
    try:
        for what, function, extra in (
            ("barriers", ranks.barriers, ()),
            ("all-reduces", collectives.again, (_ELEMENTS,)),
        ):
            begin, done = time.monotonic(), 0
            while done < given.runs:
                lot = min(_LOT, given.runs - done)
                wrong += sum(workers.run(function, given.ranks, lot, *extra))
                done += lot
                seconds = time.monotonic() - begin
                print(f"{done} {what} of {given.ranks} ranks: {wrong} wrong, {seconds:.0f} s", flush=True)
    except Failed as error:
        print(f"a rank has failed: {error}")
        return 1
    finally:
        workers.close()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
