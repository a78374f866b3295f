"""Samples of competing calls."""

from __future__ import annotations

import pytest

from benchmarks.timing import LEAST_RUNS, MAX_REPEATS, SAMPLE_SECONDS, Samples, alternate, choose_repeats


def test_median_and_spread() -> None:
    samples = Samples((4.0, 1.0, 3.0, 2.0, 5.0))
    assert (samples.median, samples.quartiles) == (3.0, (2.0, 4.0))


def test_one_sample_has_no_spread() -> None:
    assert Samples((2.0,)).quartiles == (2.0, 2.0)


@pytest.mark.parametrize(
    ("seconds", "repeats"), [(SAMPLE_SECONDS / 4, 4), (2 * SAMPLE_SECONDS, 1), (0.0, MAX_REPEATS)]
)
def test_short_calls_are_repeated(seconds: float, repeats: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.timing.time_once", lambda call: seconds)
    assert choose_repeats(lambda: None) == repeats


def test_calls_take_turns_and_change_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.timing.choose_repeats", lambda call: 1)
    order: list[str] = []
    result = alternate({name: lambda name=name: order.append(name) for name in "ab"}, runs=3)  # type: ignore[misc]
    assert "".join(order) == "abbaab"
    assert [len(samples.seconds) for samples in result.values()] == [3, 3]


def test_the_first_of_several_calls_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.timing.choose_repeats", lambda call: 2)
    clock = [0.0]
    monkeypatch.setattr("benchmarks.timing.time.perf_counter", lambda: clock[0])
    last = [""]

    def call(name: str) -> None:
        clock[0] += 1.0 if last[0] == name else 9.0  # the peer has left the caches cold
        last[0] = name

    result = alternate({name: lambda name=name: call(name) for name in "ab"}, runs=3)  # type: ignore[misc]
    assert [samples.seconds for samples in result.values()] == [(1.0,) * 3, (1.0,) * 3]


def test_long_calls_are_sampled_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.timing.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("benchmarks.timing.choose_repeats", lambda call: 1)
    assert len(alternate({"a": lambda: None}, runs=20)["a"].seconds) == LEAST_RUNS
