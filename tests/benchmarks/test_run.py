"""The command: the settings of workers, and figures that come from several of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.environment import THREAD_VARIABLES, environment
from benchmarks.figures import Figure
from benchmarks.run import command_line, in_order
from benchmarks.scaling import scaling


def figure(name: str, threads: int, value: float) -> Figure:
    return Figure("kernels", name, "ours", threads, "s", value, value, value)


def test_workers_are_told_their_threads() -> None:
    found = environment(2, reduced=False)
    assert found["MALLOC_MMAP_MAX_"] == "0"
    assert {found[name] for name in THREAD_VARIABLES} == {"2"}
    assert "TPK_CPU_WITHOUT" not in found
    assert environment(1, reduced=True)["TPK_CPU_WITHOUT"] == "avx512,amx"


def roof(name: str, threads: int, value: float, limit: str) -> Figure:
    return Figure("kernels", name, "of the roof", threads, "x", value, value, value, less=False, note=limit)


def test_what_computes_gains_beside_the_peak_and_two_threads_beside_one() -> None:
    times = [figure("matmul", 1, 8.0), figure("matmul", 2, 4.0), figure("matmul", 16, 1.0)]
    # The peak gains 8.8 times by 16 threads, as where two CPUs share a core's units.
    roofs = [roof("matmul", 1, 0.8, "arithmetic"), roof("matmul", 2, 0.8, "arithmetic")]
    roofs.append(roof("matmul", 16, 6.4 / 8.8, "arithmetic"))
    two, sixteen, beside = scaling([*times, *roofs])
    assert (two.value, two.bar, two.met) == (2.0, 1.85, True)
    assert (sixteen.value, sixteen.bar) == (8.0, None)
    assert (beside.column, beside.bar, beside.met) == ("of what the peak gains", 0.85, True)
    assert beside.value == pytest.approx(8 / 8.8)
    assert scaling([*times[:2], figure("other", 2, 1.0)]) == []  # without a roof
    peers = [
        replace(figure("matmul", count, value), column="torch") for count, value in ((1, 9.0), (16, 1.5))
    ]
    peer = scaling([*times, *roofs, *peers])[-1]
    assert (peer.column, peer.value, peer.bar) == ("torch, 1 thread / 16 threads", 6.0, None)


def test_what_moves_gains_beside_memory_and_no_more_than_threads() -> None:
    times = [figure("add", 1, 8.0), figure("add", 16, 1.0)]
    # The triad gains 10 times, then 40 times.
    for memory, beside in ((10, 0.8), (40, 0.5)):
        roofs = [roof("add", 1, 0.5, "bandwidth"), roof("add", 16, 4.0 / memory, "bandwidth")]
        gain, found = scaling([*times, *roofs])
        assert (gain.value, gain.bar) == (8.0, None)
        assert (found.column, found.value, found.met) == ("of what memory gains", beside, False)


def test_figures_of_one_name_stand_together() -> None:
    figures = [figure("b", 1, 1.0), figure("a", 1, 1.0), figure("b", 2, 1.0)]
    assert [(f.name, f.threads) for f in in_order(figures)] == [("b", 1), ("b", 2), ("a", 1)]


def test_the_command_can_be_repeated() -> None:
    assert command_line(True, [1], "soft max", 3) == (
        "python -m benchmarks.run --quick --threads 1 --only 'soft max' --rounds 3"
    )
