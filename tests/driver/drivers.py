"""Drivers that share nothing with those of other tests."""

from __future__ import annotations

from typing import TypeVar

from triton_porting_kit.driver.adapter import TritonDriver

Driver = TypeVar("Driver", bound=TritonDriver)


def fresh_driver(driver: type[Driver]) -> Driver:
    """A driver of a class of its own: a class has one object, whose devices other tests may have closed."""
    return type(driver.__name__, (driver,), {})()
