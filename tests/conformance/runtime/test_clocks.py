"""The clock of a simulated chip is held to steadiness, and any other to the host's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from triton_porting_kit.conformance.runtime import clocks


class Noted:
    """What a check needs of its context."""

    def __init__(self, models_time: bool) -> None:
        self.driver = SimpleNamespace(models_time=models_time)
        self.failed: list[str] = []

    def expect(self, holds: bool, what: str, found: str) -> None:
        if not holds:
            self.failed.append(what)


@pytest.fixture(autouse=True)
def turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "turns_for", lambda context, milliseconds: round(milliseconds * 1e6))


def failures(measured: Callable[[int], float], *, models_time: bool) -> list[str]:
    context: Any = Noted(models_time)
    clocks.check_clock(context, measured)
    return list(context.failed)


def test_a_simulated_chip_may_be_slower_than_the_host() -> None:
    slow = lambda turns: 1e-4 * turns + 1  # noqa: E731
    assert failures(slow, models_time=True) == []
    assert "it is not more than the host measured" in failures(slow, models_time=False)


def drifting() -> Iterator[float]:
    yield from (100.0, 110.0, 420.0)


def test_a_simulated_chip_that_drifts_is_found() -> None:
    times = drifting()
    assert failures(lambda turns: next(times), models_time=True) == ["the same kernel takes the same time"]


@pytest.mark.parametrize("power", [0, 0.5, 2])
def test_time_has_to_follow_work(power: float) -> None:
    found = failures(lambda turns: 100 * (turns / 15e6) ** power, models_time=True)
    assert found == ["four times the work takes four times as long"]


def test_time_that_stands_still_is_found() -> None:
    assert "time passes while a kernel runs" in failures(lambda turns: 0.0, models_time=True)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_a_time_of_another_unit_is_impossible_for_a_chip(factor: float) -> None:
    cycles = lambda turns: turns * 4e-6 * factor  # noqa: E731 (four cycles of 1 ns, in milliseconds)
    assert failures(cycles, models_time=True) == ["in milliseconds, an iteration takes 0.1 to 1000 ns"]
