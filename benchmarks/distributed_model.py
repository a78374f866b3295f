"""Ranks on chips that are joined by links, by a simulation of events: `python -m benchmarks.distributed_model`.

Each rank is a chip `n1`, whose port to the others moves 64 GB/s in each direction. All-reduce of 64 MiB is compared
with what the ports need at least, and all-gather + matmul with one after the other. The command fails if a bar is
missed. `--ranks 64` prints what so many ranks take, which is simulated in some minutes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial

os.environ["TRITON_DEFAULT_BACKEND"] = "cpu"  # whose stage `structured` the model executes

import triton
import triton.language as tl

from triton_porting_kit.chips import ChipDescription, load
from triton_porting_kit.distributed import Collectives, Group
from triton_porting_kit.distributed.model.timing import Timed, time_ranks
from triton_porting_kit.distributed.overlapped import Overlapped
from triton_porting_kit.driver import DeviceArray

PROGRAMS = 7
LEAST_SHARE = 0.85
"""Of the time that all-reduce takes, what its links need at least."""
LEAST_GAIN = 1.4
"""How much faster all-gather + matmul is than one after the other."""
PRODUCTS = {2: (896, 2048, 384), 4: (896, 2048, 384), 8: (896, 2048, 384)}
"""Rows of each rank, the inner dimension and columns, by ranks: transfers and products take about as long."""
BLOCK, INNER = 128, 64
MOST_IN_A_RING = 16
"""Ranks; the simulation of more takes long."""


@triton.jit(do_not_specialize=["M", "N", "K"])
def matmul_kernel(a, b, out, M, N, K, BLOCK: tl.constexpr, INNER: tl.constexpr):
    """Multiply a, M by K, and b, K by N, with the tiles of the overlapped kernels."""
    for block in range(tl.program_id(0), tl.cdiv(M, BLOCK), tl.num_programs(0)):
        rows = block * BLOCK + tl.arange(0, BLOCK)
        for column in range(0, N, BLOCK):
            columns = column + tl.arange(0, BLOCK)
            total = tl.zeros([BLOCK, BLOCK], tl.float32)
            for start in range(0, K, INNER):
                inner = start + tl.arange(0, INNER)
                left = tl.load(
                    a + rows[:, None] * K + inner, mask=(rows[:, None] < M) & (inner < K), other=0.0
                )
                right = tl.load(
                    b + inner[:, None] * N + columns, mask=(inner[:, None] < K) & (columns < N), other=0.0
                )
                total = tl.dot(left, right, total, input_precision="ieee")
            mask = (rows[:, None] < M) & (columns < N)
            tl.store(out + rows[:, None] * N + columns, total.to(out.dtype.element_ty), mask=mask)


def all_reduce(algorithm: str, count: int, block: int, group: Group) -> None:
    collectives = Collectives(group, programs=PROGRAMS, block=block)
    x = group.zeros(count, "float32")
    out = group.zeros(count, "float32") if algorithm == "one_shot" else None
    collectives.all_reduce(x, out, algorithm=algorithm)


def products(m: int, k: int, n: int, group: Group) -> None:
    """All-gather, matmul, and both at a time, of float16."""
    ranks, device = group.ranks, group.device
    a, b = (DeviceArray.empty(shape, "float16", device) for shape in ((m, k), (k, n)))
    out = DeviceArray.empty((ranks * m, n), "float16", device)
    whole = group.zeros((ranks * m, k), "float16")
    Collectives(group, programs=PROGRAMS, block=BLOCK * INNER).all_gather(a, whole)
    matmul_kernel[(PROGRAMS,)](whole, b, out, ranks * m, n, k, BLOCK=BLOCK, INNER=INNER)
    Overlapped(group, programs=PROGRAMS, block=BLOCK, inner=INNER).all_gather_matmul(a, b, out)


def _line(what: str, timed: Timed, chip: ChipDescription, more: str) -> str:
    microseconds = timed.cycles / chip.clock_mhz
    return (
        f"{what}: {microseconds:.0f} us, {timed.bytes_sent / 2**20:.1f} MiB sent by a rank, links busy "
        f"{timed.link_use:.0%}{more}"
    )


def report(ranks: int, mib: int, chip: ChipDescription) -> bool:
    """Print what a number of ranks takes; whether the bars are met."""
    assert chip.link is not None
    count, best = (mib << 20) // 4, 0.0
    bound = 2 * (ranks - 1) / ranks * 4 * count / chip.link.bytes_per_cycle
    block = min(16384, 1 << max(10, (count // ranks // PROGRAMS).bit_length() - 2))
    for algorithm in ("two_shot", "ring") if ranks <= MOST_IN_A_RING else ("two_shot",):
        body = partial(all_reduce, algorithm, count, block)
        timed = time_ranks(body, ranks, chip, heap_bytes=(3 * mib + 4) << 20)[-1]
        best = max(best, bound / timed.cycles)
        more = f", {bound / timed.cycles:.1%} of what the links allow"
        print(_line(f"all-reduce of {mib} MiB, {algorithm}, {ranks} ranks", timed, chip, more), flush=True)
    if ranks not in PRODUCTS:
        return True
    m, k, n = PRODUCTS[ranks]
    gather, product, both = time_ranks(partial(products, m, k, n), ranks, chip, heap_bytes=256 << 20)
    gain = (gather.cycles + product.cycles) / both.cycles
    size = f"{m} by {k} by {n}, {ranks} ranks"
    print(_line(f"all-gather, {size}", gather, chip, ""))
    print(_line(f"matmul, {size}", product, chip, ""))
    print(
        _line(f"all-gather + matmul, {size}", both, chip, f", {gain:.2f} times faster than both"), flush=True
    )
    return best >= LEAST_SHARE and gain >= LEAST_GAIN


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, 8])
    parser.add_argument("--mib", type=int, default=64, help="size of the all-reduce")
    parser.add_argument("--chip", default="n1", help="a description with a link")
    options = parser.parse_args()
    begin = time.monotonic()
    met = [report(ranks, options.mib, load(options.chip)) for ranks in options.ranks]
    print(f"simulated in {time.monotonic() - begin:.0f} s")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
