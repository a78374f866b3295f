"""Regions that a `LoopBuilder` writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from triton_porting_kit.compiler.loops.ir.values import Value


@dataclass(eq=False)
class Region:
    """Lines of a region, and the values already computed in it. `branch` is the level of the enclosing branch."""

    branch: int = 0
    is_open: bool = True
    lines: list[str] = field(default_factory=list)
    known: dict[str, Value] = field(default_factory=dict)
    reads: dict[str, Value] = field(default_factory=dict)
    endings: list[Callable[[], None]] = field(default_factory=list)


@dataclass
class LoopRegion:
    """Inside a `LoopBuilder.loop`: induction variable, carried arguments, and what to yield; after it, the results."""

    induction: Value
    arguments: list[Value]
    yields: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
