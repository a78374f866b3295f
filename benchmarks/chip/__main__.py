"""Times kernels written by hand and Triton's on the virtual chip n1, by its clock, and prints the ratio of speeds.

``python -m benchmarks.chip [--quick] [--only WORD]`` compares all results with NumPy's. The exit status is 0
only if all are right.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from triton_porting_kit.driver import DeviceArray

from .cases import QUICK, WHOLE, Case
from .hand import Hand
from .virtual import tests

CHIP = "n1"


def cycles(device: Any, launch: Callable[[], None]) -> float:
    """The chip's cycles of one launch, after one that compiles."""
    launch()
    start, end = device.create_event(), device.create_event()
    device.record_event(start)
    launch()
    device.record_event(end)
    device.synchronize()
    return float(device.elapsed_time(start, end) * 1e3 * device.description.clock_mhz)


def wrong(case: Case, result: Any, expected: Any) -> str:
    """What is wrong about a result; empty if nothing is."""
    found = result.numpy().astype(np.float64)
    scale = np.abs(expected).max()
    error = np.abs(found - expected).max() / scale
    return "" if error <= case.tolerance else f"an error of {error:.2g} of the largest element"


def timed(
    device: Any, case: Case, launch: Callable[..., None], inputs: Sequence[Any], expected: Any
) -> tuple[float, str]:
    """The cycles of a launch, and what is wrong about its result."""
    dtype = inputs[0].dtype
    arrays = [DeviceArray.from_numpy(values, device) for values in inputs]
    out = DeviceArray.from_numpy(np.full(expected.shape, -77, dtype), device)
    taken = cycles(device, lambda: launch(*arrays, out))
    return taken, wrong(case, out, expected)


def run(device: Any, hand: Hand, case: Case) -> bool:
    """Time a case and print its row. Returns whether both results are right."""
    from triton.runtime.errors import OutOfResources

    inputs = case.inputs(np.random.default_rng(0))
    expected = case.expected(*inputs)

    def by_hand(*arrays: Any) -> None:
        name, grid, arguments = case.hand(*arrays)
        hand.launch(name, grid, *arguments)

    own, bad = timed(device, case, by_hand, inputs, expected)
    mistakes = [f"by hand: {bad}"] if bad else []
    best, tiles = float("inf"), ""
    for values in case.tiles:
        try:
            taken, bad = timed(
                device, case, lambda *a, chosen=values: case.triton(*a, **chosen), inputs, expected
            )
        except OutOfResources:
            continue
        chosen = " ".join(f"{name}={value}" for name, value in values.items())
        mistakes += [f"Triton, {chosen}: {bad}"] if bad else []
        if taken < best:
            best, tiles = taken, chosen
    print(
        f"{case.name:<32} {own:>11,.0f} {_use(device, case, own):>7} {best:>11,.0f} {_use(device, case, best):>7} "
        f"{own / best:>6.2f}  {tiles}{''.join(f'; WRONG {mistake}' for mistake in mistakes)}",
        flush=True,
    )
    return not mistakes


def _use(device: Any, case: Case, taken: float) -> str:
    """The share of the matrix unit, or of global bandwidth for kernels without products."""
    chip = device.description
    if case.multiply_adds:
        kind = chip.matrix.product("fp16", "fp16", "fp32")
        m, n, k = kind.tile
        share = case.multiply_adds / (m * n * k) * kind.cycles / chip.cores / taken
    else:
        share = case.bytes / chip.global_memory.bytes_per_cycle / taken
    return f"{share:.1%}"


def main() -> int:
    """Run the cases. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chip", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", default="", metavar="WORD", help="the cases whose names contain this")
    given = parser.parse_args()
    right = True
    with tests("chip_backend").running_on(CHIP) as device:
        hand = Hand(device)
        print(f"{CHIP:<32} {'by hand':>11} {'':>7} {'Triton':>11} {'':>7} {'speed':>6}")
        for case in QUICK if given.quick else WHOLE:
            if given.only in case.name:
                right &= run(device, hand, case)
    print(
        "cycles; the share of the matrix unit, or of bandwidth; Triton's speed by that of the kernel by hand"
    )
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
