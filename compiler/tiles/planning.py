"""Stops a compilation for a chip as soon as it is known whether the tiles fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .plan import Plan


class Planned(Exception):
    """The tiles of a kernel fit, by this plan. Raised in the place of the rest of the compilation."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.plan = plan


_PLANNING = ContextVar("planning", default=False)


@contextmanager
def planning() -> Iterator[None]:
    """Meanwhile, compiling for a chip raises `Planned`, or Triton's `OutOfResources`, as soon as it knows."""
    token = _PLANNING.set(True)
    try:
        yield
    finally:
        _PLANNING.reset(token)


def wanted() -> bool:
    """Whether a plan is all that is asked for."""
    return _PLANNING.get()


def decided(plan: Plan) -> None:
    """Called by a stage that knows that the tiles fit."""
    if _PLANNING.get():
        raise Planned(plan)
