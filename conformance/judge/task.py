"""`Task`: what a candidate has to compute, whatever format it was written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.conformance.judge.values import Leaf
from triton_porting_kit.conformance.types import Array, Kind

Random = np.random.Generator
Reference = Callable[[Sequence[Array]], Sequence[Array]]
"""From the arrays (floating-point ones as float64) to the results; called in the judge's process only."""


@dataclass(frozen=True)
class Call:
    """One call of a candidate: fresh arrays, and the tree of arguments that they go into."""

    leaves: list[Leaf]
    arguments: Any
    """The tree, as `values.flatten` makes it."""
    results: list[tuple[Kind, tuple[int, ...]]]
    """Type and shape of each result."""
    weights: int = 0
    """How many of the last arrays are weights, which the candidate had with its set-up."""
    outputs: tuple[int, ...] = ()
    """Arrays among those given that are there for results: they may change."""
    own_check: Callable[[Sequence[Array]], str] | None = None
    """The task's own comparison, where float64 cannot decide: given the results, what is wrong, or nothing."""


@dataclass(frozen=True)
class Work:
    """What a call cannot do without."""

    bytes: float | None = None
    """That have to move; None: all arrays, once."""
    flops: float = 0.0


@dataclass(frozen=True)
class Task:
    """A problem with its reference. Only the judge's process has one."""

    name: str
    format: str
    entry: str
    """What the candidate's file defines."""
    cases: Callable[[Random], Sequence[Mapping[str, Any]]]
    """The parameters of each case; shapes that are drawn are others in each run."""
    timed: Mapping[str, Any]
    """The parameters of the case that is timed."""
    make: Callable[[Random, Mapping[str, Any]], Call]
    reference: Callable[[Call], Reference]
    given: bool = False
    """Whether results are arrays that the candidate is given behind its inputs; else it returns them."""
    writes: tuple[int, ...] = ()
    """Arrays that the candidate may change, by position; what they hold then are results behind those returned."""
    allowed: tuple[str, ...] = ()
    """Operators of torch that may compute, as ``aten.sum``."""
    precision: str = ""
    """The type to which operands of products may be rounded; empty: their own."""
    work: Callable[[Call], Work] = lambda call: Work()
    setup: Mapping[str, Any] = field(default_factory=dict)
    """What the candidate's process gets besides its file: arguments of a constructor, sources of types."""
    setup_leaves: Sequence[Leaf] = ()
    """Arrays of the set-up, such as weights."""
    needs_torch: bool = False
