"""Regions that a `LoopBuilder` writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from triton_porting_kit.compiler.loops.ir.values import Value

Branch: TypeAlias = Callable[[], Sequence[Value]]
"""A branch of `LoopBuilder.if_else`: emits code, then returns the values to yield."""

POINTS = "tpk.points"
"""The attribute of loops over points of a tile: the most iterations. They may run in any order, or at once."""

CONTINUES = "tpk.continues"
"""The attribute of a loop over points of a tile that may run at once with those of the loop before it."""


def points_attributes(points: int, *, continues: bool) -> str:
    """The attribute dictionary of a loop, or nothing for 0 `points`.

    `points`: the most iterations of a loop whose iterations may run in any order or at once, as the points of a tile; 0
    for any other loop. It `continues` the loop before it, if that has other points of the same tile.
    """
    return f"{{{POINTS} = {points} : i64{f', {CONTINUES}' if continues else ''}}}" if points else ""


def yield_of(values: Sequence[Value]) -> str:
    """The terminator of a region that yields values."""
    return f"scf.yield {', '.join(v.name for v in values)} : {', '.join(v.type for v in values)}"


@dataclass(eq=False, repr=False)
class Region:
    """Lines of a region, and the values already computed in it. `branch` is the level of the enclosing branch."""

    branch: int = 0
    is_open: bool = True
    lines: list[str] = field(default_factory=list)
    known: dict[str, Value] = field(default_factory=dict)
    reads: dict[str, Value] = field(default_factory=dict)
    endings: list[Callable[[], None]] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class LoopRegion:
    """Inside a `LoopBuilder.loop`: induction variable, carried arguments, and what to yield; after it, the results."""

    induction: Value
    arguments: list[Value]
    yields: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
