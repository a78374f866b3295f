"""Matmul beyond its rows: how much the tile matters, and what happens right after a call of torch."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.matmul import Tiles
from triton_porting_kit.kernels.places import TorchPlace
from triton_porting_kit.kernels.vector_add import vector_add

from .figures import Figure, measured
from .measure import checked_call
from .rows import SHORT
from .timing import Samples, alternate, quartiles

SIZES = (32, 64, 128)
TILE_BAR, AFTER_TORCH_BAR = 0.75, 0.9
TILE_RUNS = 7


def tile_figures(place: Any, threads: int, wanted: Callable[[str], Any], quick: bool) -> list[Figure]:
    """The speed of every tile relative to the best one; the target applies to the worst."""
    n = 512 if quick else 1024
    figures: list[Figure] = []
    for dtype in ("float32",) if quick else ("float32", "bfloat16"):
        name = f"matmul {SHORT[dtype]} {n}"
        if not wanted(f"tiles {name}"):
            continue
        calls = {}
        arrays = None  # the same for every tile, as the caches are
        for height, width, depth in product(SIZES, repeat=3):
            case = cases.matmul_case(n, n, n, dtype, tiles=Tiles(height, width, depth, 8))
            calls[f"{height}x{width}x{depth}"], arrays, _ = checked_call(case, place, arrays)
        samples = alternate(calls, 4 if quick else TILE_RUNS)
        best = min(found.median for found in samples.values())
        parts = {tile: best / found.median for tile, found in samples.items()}
        worst = min(parts, key=parts.__getitem__)
        figures.append(
            measured(
                parts[worst],
                "tiles",
                name,
                "worst / best",
                threads,
                unit="x",
                less=False,
                bar=TILE_BAR,
                note=f"worst {worst}, best {max(parts, key=parts.__getitem__)}",
            )
        )
        figures += [measured(found, "tiles", name, tile, threads) for tile, found in samples.items()]
    return figures


def after_torch_figures(place: Any, threads: int, wanted: Callable[[str], Any], runs: int) -> list[Figure]:
    """Our kernels right after a call of torch, whose threads may still hold the cores, and right after one of ours."""
    if not isinstance(place, TorchPlace):
        return []
    import torch

    x = torch.ones(1 << 20)
    y = torch.empty_like(x)
    figures = []
    # The same work on the same arrays, so that caches hold the same.
    own, theirs = partial(vector_add, x, x, out=y), partial(torch.add, x, x, out=y)
    own()
    for name, case in (
        ("vector add fp32 1M", cases.vector_add_case(1 << 20, "float32")),
        ("matmul fp32 512", cases.matmul_case(512, 512, 512, "float32", tiles=Tiles(64, 64, 64, 8))),
    ):
        if not wanted(f"after torch {name}"):
            continue
        ours, *_ = checked_call(case, place)
        alone, after = _beside(ours, own, theirs, 4 * runs)
        pairs = [a / b for a, b in zip(alone.seconds, after.seconds, strict=True)]
        figures += [
            measured(alone, "after torch", name, "after our vector add", threads),
            measured(after, "after torch", name, "after torch.add", threads),
            Figure(
                "after torch",
                name,
                "after ours / after torch",
                threads,
                "x",
                alone.median / after.median,
                *quartiles(pairs),
                less=False,
                bar=AFTER_TORCH_BAR,
            ),
        ]
    return figures


def _beside(
    ours: Callable[[], Any], own: Callable[[], Any], theirs: Callable[[], Any], runs: int
) -> tuple[Samples, Samples]:
    """Single calls of ours, right after another call of ours and right after theirs."""
    alone: list[float] = []
    after: list[float] = []
    for _ in range(runs):
        for before, found in ((own, alone), (theirs, after)):
            # Threads of what was called some time ago are asleep again; the core is awake, and has our code.
            time.sleep(0.005)
            own()
            before()
            start = time.perf_counter()
            ours()
            found.append(time.perf_counter() - start)
    return Samples(tuple(alone)), Samples(tuple(after))
