"""Variances of long dimensions on the CPU: the mean first, then the squares of the differences from it.

Inductor's update of both at once (Welford) divides for each element, and carries three tiles instead of one. The second
reading mostly comes from a cache. Inductor itself takes two steps for up to 1024 elements (torch 2.13), a limit that
its C++ needs for exact sums; those of a tile of 2048 partial sums are exact enough.
"""

from __future__ import annotations

import functools
from typing import Any

from torch._inductor import config

from triton_porting_kit.pytorch.cpu import is_ours


def register() -> None:
    """Replace Inductor's choice between the two, for tensors of the CPU whose code is Triton."""
    from torch._inductor import lowering

    choose: Any = lowering.use_two_step_variance

    @functools.wraps(choose)
    def patched(x: Any, *args: Any, **kwargs: Any) -> bool:
        triton = x.get_device().type == "cpu" and config.cpu_backend == "triton" and is_ours()
        return triton or bool(choose(x, *args, **kwargs))

    lowering.use_two_step_variance = patched
