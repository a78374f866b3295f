"""What tests of levels share: running checks on the CPU backend in this process."""

from __future__ import annotations

import functools

from conformance_helpers import memory

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.trial import try_check


@functools.cache
def checks_of(level: str) -> dict[str, Check]:
    """The checks of a level by name."""
    return {check.name: check for check in catalogue.checks([level])}


@functools.cache
def session() -> Session:
    """One for all tests of a process."""
    return Session("cpu", memory())


def tried(check: Check) -> Record:
    """What becomes of a check here."""
    return try_check(check, session())


def failing(level: str, names: list[str]) -> list[str]:
    """Which of some checks of a level fail here."""
    return [name for name in names if tried(checks_of(level)[name]).status == "fail"]
