"""What a workload is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ..inductor_patterns import Program


@dataclass(frozen=True)
class Made:
    """A workload with its tensors.

    `program` is the work in torch's operators: the peers, and in float64 the oracle. `ours` launches Triton's kernels;
    it is called with the program's inputs and returns what `program.outputs()` does, results and then gradients.
    `moved` is what must go between memory and the cores at least, in bytes; `flops` what must be computed, at the
    machine's peak for `dtype`. `others` are further ways of torch for the same work, called with the inputs.
    """

    program: Program
    ours: Callable[..., tuple[Tensor, ...]]
    moved: int
    flops: int = 0
    dtype: str = "float32"
    others: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """A named workload. `quick` ones are part of a quick run."""

    name: str
    make: Callable[[], Made]
    quick: bool = False


def bytes_of(*tensors: Tensor) -> int:
    """The size of tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
