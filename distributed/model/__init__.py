"""Ranks by the model: programs of several ranks in one process, whose kernels an interpreter runs.

`check_ranks` finds accesses that nothing orders, ranks that wait for each other, and accesses out of bounds, on a
schedule that a seed chooses. docs/distributed.md describes what it finds.
"""

from triton_porting_kit.distributed.model.running import check_ranks

__all__ = ["check_ranks"]
