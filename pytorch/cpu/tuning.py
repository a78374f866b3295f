"""Fewer configurations of Inductor's kernels on the CPU, which are measured in less time.

Inductor lists configurations of its kernels for GPUs, compiles all and times each for an eighth of a second. On a CPU
this takes longer than all the rest, and most of them cannot be the fastest: vectors need 16 elements of the dimension
along which memory is contiguous, and little depends on the size of a block beyond that.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch._inductor import config

from triton_porting_kit.pytorch.cpu import is_ours

_SHORT = {"inductor_default_autotune_warmup": 1, "inductor_default_autotune_rep": 20}
"""Inductor's settings of how long it calls a kernel before it measures and while it does, in milliseconds."""

_LEAST_SIDE = 16
"""Elements that a tile of two dimensions has along each: the lanes of a vector, and rows transposed at once."""

_COLUMNS = 64
"""Columns that a reduction of columns takes at once at least: a cache line of the narrowest elements."""

Sizes = Mapping[str, int]


def register() -> None:
    """Replace the list of configurations of Inductor's own kernels, and how long they are measured.

    Inductor has no hook for it on a device of its own (torch 2.13).
    """
    # Any: the class is one of GPUs' parts of torch, which has no types.
    heuristics: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")
    tuner = heuristics.CachingAutotuner
    initialise, measure = tuner.__init__, tuner.bench
    kinds = heuristics.HeuristicType
    fewer: dict[Any, Callable[[list[Sizes]], list[Sizes]]] = {
        kinds.POINTWISE: of_pointwise,
        kinds.REDUCTION: of_reduction,
    }

    @functools.wraps(initialise)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        choose = fewer.get(self.heuristic_type)
        if choose is None or not _is_tuned_by_us(self):
            return
        kept = choose([given.kwargs for given in self.configs])
        self.configs = [given for given in self.configs if given.kwargs in kept]

    @functools.wraps(measure)
    def bench(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_tuned_by_us(self):
            return measure(self, *args, **kwargs)
        with config.patch(_SHORT):
            return measure(self, *args, **kwargs)

    tuner.__init__, tuner.bench = __init__, bench


def _is_tuned_by_us(tuner: Any) -> bool:
    """Whether the kernel is for the kit's CPU backend, and the program did not ask for a long search."""
    asked = tuner.inductor_meta.get("max_autotune") or tuner.inductor_meta.get("max_autotune_pointwise")
    return tuner.device_props.type == "cpu" and not asked and is_ours()


def of_pointwise(sizes: Sequence[Sizes]) -> list[Sizes]:
    """Which of these blocks of element-wise kernels are tried.

    One of one dimension. Of two, no row or column alone, and no square of 32 if larger tiles are there.
    """
    if not sizes or len(sizes[0]) == 1:
        return list(sizes[:1])
    sides = [tuple(size.values()) for size in sizes]
    wide = [size for size, side in zip(sizes, sides, strict=True) if min(side) >= _LEAST_SIDE]
    large = [size for size in wide if min(size.values()) * max(size.values()) > 32 * 32]
    return large or wide or list(sizes)


def of_reduction(sizes: Sequence[Sizes]) -> list[Sizes]:
    """Which of these blocks of reductions are tried.

    Inductor gives blocks of many columns (XBLOCK) to reductions that do not read memory in the order of the reduced
    dimension. The others are for GPUs, and up to 180 times slower here.
    """
    columns = [size for size in sizes if size.get("XBLOCK", 1) >= _COLUMNS and "YBLOCK" not in size]
    return columns or list(sizes)
