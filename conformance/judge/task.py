"""`Task`: what a candidate must compute, independent of the task's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_porting_kit.conformance.judge.values import Leaf
from triton_porting_kit.conformance.types import Array, Kind

Random = np.random.Generator
Reference = Callable[[Sequence[Array]], Sequence[Array]]
"""Maps arrays (floating-point ones as float64) to results. Called only in the judge's process."""


@dataclass(frozen=True)
class Call:
    """One call of a candidate: fresh arrays, and the argument tree that contains them."""

    leaves: list[Leaf]
    arguments: Any
    """The argument tree, as returned by `values.flatten`."""
    results: list[tuple[Kind, tuple[int, ...]]]
    """Type and shape of each result."""
    weights: int = 0
    """The number of arrays at the end that are weights, which the candidate received at set-up."""
    outputs: tuple[int, ...] = ()
    """Indices of the output arrays among the arguments, which the candidate may change."""
    own_check: Callable[[Sequence[Array]], str] | None = None
    """The task's own comparison, if its reference does not compute in float64. Returns an error message or nothing."""


@dataclass(frozen=True)
class Work:
    """The minimum work of a call."""

    bytes: float | None = None
    """The bytes that must be transferred; None: the size of all arrays."""
    flops: float = 0.0


@dataclass(frozen=True)
class Task:
    """A problem with its reference. It exists only in the judge's process."""

    name: str
    format: str
    entry: str
    """The name that the candidate's file must define."""
    cases: Callable[[Random], Sequence[Mapping[str, Any]]]
    """Returns the parameters of each case. Random shapes differ from run to run."""
    timed: Mapping[str, Any]
    """The parameters of the timed case."""
    make: Callable[[Random, Mapping[str, Any]], Call]
    reference: Callable[[Call], Reference]
    given: bool = False
    """Whether the candidate receives result arrays after its inputs. Otherwise it returns its results."""
    writes: tuple[int, ...] = ()
    """Positions of arrays that the candidate may change. Their final contents are results, after the returned ones."""
    allowed: tuple[str, ...] = ()
    """Torch operators that the candidate may use to compute, such as ``aten.sum``."""
    precision: str = ""
    """The type to which operands of products may be rounded; empty: their own type."""
    work: Callable[[Call], Work] = lambda call: Work()
    setup: Mapping[str, Any] = field(default_factory=dict)
    """Further data for the candidate's process: constructor arguments, sources of types."""
    setup_leaves: Sequence[Leaf] = ()
    """The arrays of the set-up, such as weights."""
    needs_torch: bool = False
