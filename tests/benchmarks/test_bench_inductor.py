"""The benchmark of `torch.compile`: its table of programs, its checks, and its summary."""

from __future__ import annotations

import time
from typing import Any

import pytest
import typer

torch = pytest.importorskip("torch")

from benchmarks import inductor, inductor_worker  # noqa: E402
from benchmarks.figures import Figure  # noqa: E402
from benchmarks.inductor_columns import GROUP, RATIO  # noqa: E402
from benchmarks.inductor_patterns import Program, patterns  # noqa: E402


def ratio(name: str, value: float, threads: int = 1) -> Figure:
    return Figure(GROUP, name, RATIO, threads, "x", value, value, value, True, 1.3)


def test_there_are_twenty_patterns_of_different_names() -> None:
    names = [pattern.name for pattern in patterns()]
    assert len(names) >= 20
    assert len(set(names)) == len(names)
    assert sum(pattern.quick for pattern in patterns()) >= 3


def test_gradients_follow_the_results() -> None:
    x = torch.randn(4, 8, requires_grad=True)
    value, gradient = Program(lambda x: (x * x).sum(), (x,), train=True).outputs()
    torch.testing.assert_close(value, (x * x).sum())
    torch.testing.assert_close(gradient, 2 * x)


def test_the_exact_program_is_in_float64() -> None:
    module = torch.nn.Linear(3, 2)
    program = Program(module, (torch.randn(4, 3),), train=True)
    exact = program.exact().outputs()
    assert {x.dtype for x in exact} == {torch.float64}
    assert module.weight.dtype == torch.float32
    inductor_worker.check("linear", program.outputs(), exact)


@pytest.mark.parametrize("wrong", [torch.tensor([1.0, 2.01]), torch.tensor([1.0, float("nan")])])
def test_a_wrong_result_is_not_timed(wrong: Any) -> None:
    with pytest.raises(inductor_worker.WrongResult, match="result 0"):
        inductor_worker.check("pair", (wrong,), (torch.tensor([1.0, 2.0], dtype=torch.float64),))


def test_the_summary_is_the_geometric_mean_with_the_extremes() -> None:
    (mean,) = inductor.summary([ratio("a", 0.5), ratio("b", 2.0)])
    assert (mean.value, mean.low, mean.high, mean.met) == (1.0, 0.5, 2.0, False)


def test_what_misses_its_target_is_listed() -> None:
    lines = inductor.missed([ratio("slow", 1.5), ratio("fast", 0.5)])
    assert lines == ["missed: slow, 1 thread: ours / C++ 1.50, the target is at most 1.30"]
    assert any("slow" in line and "1.50" in line for line in inductor.table([ratio("slow", 1.5)]))


def test_the_fastest_call_counts() -> None:
    waits = {"short": iter([0.0] * 1000), "long": iter([0.004] * 1000)}
    found = inductor_worker.fastest(
        {name: lambda wait=wait: time.sleep(next(wait)) for name, wait in waits.items()}  # type: ignore[misc]
    )
    assert found["short"] < 0.004 <= found["long"]


def test_threads_are_a_list() -> None:
    assert inductor.parse_threads("1,2,1") == [1, 2]
    with pytest.raises(typer.BadParameter, match="thread counts"):
        inductor.parse_threads("two")
