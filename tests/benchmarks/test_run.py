"""The command: the settings of workers, and figures that come from several of them."""

from __future__ import annotations

from benchmarks.figures import Figure
from benchmarks.run import THREAD_VARIABLES, command_line, environment, in_order, scaling


def figure(name: str, threads: int, value: float) -> Figure:
    return Figure("kernels", name, "ours", threads, "s", value, value, value)


def test_workers_are_told_their_threads() -> None:
    found = environment(2, reduced=False)
    assert {found[name] for name in THREAD_VARIABLES} == {"2"}
    assert "TPK_CPU_WITHOUT" not in found
    assert environment(1, reduced=True)["TPK_CPU_WITHOUT"] == "avx512,amx"


def test_scaling_is_of_what_computes() -> None:
    figures = [
        figure(name, threads, 4.0 / threads) for name in ("matmul fp32 512", "softmax") for threads in (1, 2)
    ]
    (found,) = scaling(figures)
    assert (found.name, found.value, found.met) == ("matmul fp32 512", 2.0, True)


def test_figures_of_one_name_stand_together() -> None:
    figures = [figure("b", 1, 1.0), figure("a", 1, 1.0), figure("b", 2, 1.0)]
    assert [(f.name, f.threads) for f in in_order(figures)] == [("b", 1), ("b", 2), ("a", 1)]


def test_the_command_can_be_repeated() -> None:
    assert command_line(True, [1], "soft max", 3) == (
        "python -m benchmarks.run --quick --threads 1 --only 'soft max' --rounds 3"
    )
