"""Two processes on this machine, beside torch's gloo: `python -m benchmarks.distributed`.

All-reduce of float32, and products that communicate, beside torch's product and gloo. Both run in the same processes
and take turns. A figure is the fastest call of the slower rank. The kit's array is in symmetric memory, gloo's in
ordinary memory, as each asks for.
"""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

RANKS = 2
SIZES_MIB = (1, 16, 64)
SHAPE = (512, 1024, 1024)
"""Rows of each rank, inner dimension and columns of the products."""
BAR = 1.0
"""At 64 MiB, the kit takes no longer than gloo."""


def _fastest(
    calls: dict[str, Callable[[], Any]], rounds: int, together: Callable[[], None]
) -> dict[str, float]:
    """Seconds of the fastest call of each, taking turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            together()
            begin = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def measure(rounds: int, file: str) -> dict[str, dict[str, float]]:
    """As one of the ranks: seconds by MiB, or the name of a product, and way."""
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import FileStore

    from triton_porting_kit.distributed import Collectives, open_group
    from triton_porting_kit.distributed.collectives import ALGORITHMS

    found: dict[str, dict[str, float]] = {}
    with open_group(heap_bytes=400 << 20) as group:
        store = FileStore(file, group.ranks)
        dist.init_process_group("gloo", store=store, rank=group.rank, world_size=group.ranks)
        collectives = Collectives(group)
        for size in SIZES_MIB:
            count = (size << 20) // 4
            x: Any = group.tensor(count, torch.float32)
            out, plain = torch.zeros(count), torch.zeros(count)
            calls: dict[str, Callable[[], Any]] = {"gloo": partial(dist.all_reduce, plain)}
            for algorithm in ALGORITHMS:
                target = out if algorithm == "one_shot" else None
                calls[algorithm] = partial(collectives.all_reduce, x, target, algorithm=algorithm)
            found[str(size)] = _fastest(calls, rounds, group.barrier)
        for name, calls in _products(group).items():
            found[name] = _fastest(calls, rounds, group.barrier)
        dist.destroy_process_group()
        slowest = [_parsed(each.decode()) for each in group.exchange(_line(found).encode())]
    return {size: {name: max(each[size][name] for each in slowest) for name in found[size]} for size in found}


def _products(group: Any) -> dict[str, dict[str, Callable[[], Any]]]:
    """Products of float32 that communicate, by the kit in one kernel, and by torch and gloo one after the other."""
    import torch
    import torch.distributed as dist

    from triton_porting_kit.distributed.overlapped import Overlapped

    ranks, overlapped = group.ranks, Overlapped(group)
    m, k, n = SHAPE
    a, b, out = torch.ones(m, k), torch.ones(k, n), torch.empty(ranks * m, n)
    wide, mine, parts = torch.ones(ranks * m, k), torch.empty(m, n), [torch.empty(m, k) for _ in range(ranks)]

    def gather_first() -> None:
        dist.all_gather(parts, a)
        torch.mm(torch.cat(parts), b, out=out)

    def reduce_afterwards() -> None:
        product = torch.mm(wide, b)
        dist.all_reduce(product)
        mine.copy_(product[group.rank * m : (group.rank + 1) * m])

    return {
        "all-gather + matmul": {
            "gloo": gather_first,
            "kit": partial(overlapped.all_gather_matmul, a, b, out),
        },
        "matmul + reduce-scatter": {
            "gloo": reduce_afterwards,
            "kit": partial(overlapped.matmul_reduce_scatter, wide, b, mine),
        },
    }


def _line(found: dict[str, dict[str, float]]) -> str:
    return ";".join(
        f"{size}:{name}:{seconds!r}" for size, by in found.items() for name, seconds in by.items()
    )


def _parsed(text: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for each in text.split(";"):
        size, name, seconds = each.split(":")
        found.setdefault(size, {})[name] = float(seconds)
    return found


def report(found: dict[str, dict[str, float]]) -> bool:
    """Print the tables; whether the bar is met."""
    products = {name: found.pop(name) for name in [*found] if not name.isdigit()}
    names = list(next(iter(found.values())))
    print("| MiB | " + " | ".join(f"{name}, ms" for name in names) + " | gloo / two_shot |")
    print("|---|" + "---|" * (len(names) + 1))
    for size, by in found.items():
        cells = [f"{by[name] * 1e3:.2f}" for name in names]
        print(f"| {size} | {' | '.join(cells)} | {by['gloo'] / by['two_shot']:.2f} |")
    print(
        "\n| "
        + " by ".join(map(str, SHAPE))
        + " | torch and gloo, ms | kit, ms | gloo / kit |\n|---|---|---|---|"
    )
    for name, by in products.items():
        print(f"| {name} | {by['gloo'] * 1e3:.2f} | {by['kit'] * 1e3:.2f} | {by['gloo'] / by['kit']:.2f} |")
    return found["64"]["gloo"] / found["64"]["two_shot"] >= BAR


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if "RANK" in os.environ:
        found = measure(options.rounds, os.environ["TPK_BENCHMARK_FILE"])
        return 0 if os.environ["RANK"] != "0" or report(found) else 1
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        place = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        free.close()
        given = os.environ | {
            "TRITON_DEFAULT_BACKEND": "cpu",
            "WORLD_SIZE": str(RANKS),
            "TPK_RENDEZVOUS": place,
            "TPK_GROUP_TOKEN": secrets.token_hex(16),
            "TPK_BENCHMARK_FILE": f"{folder}/gloo",
            "OMP_NUM_THREADS": "1",
        }
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", __spec__.name, *sys.argv[1:]], env=given | {"RANK": str(rank)}
            )
            for rank in range(RANKS)
        ]
        return max(process.wait() for process in processes)


if __name__ == "__main__":
    sys.exit(main())
