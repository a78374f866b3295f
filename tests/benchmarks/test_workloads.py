"""The workloads: their table, that their kernels are right, and how they are reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_document import ABOUT

torch = pytest.importorskip("torch")

from benchmarks.document import document  # noqa: E402
from benchmarks.document_texts import MISSES  # noqa: E402
from benchmarks.figures import Figure, Results  # noqa: E402
from benchmarks.inductor_worker import WrongResult, check  # noqa: E402
from benchmarks.kinds import FOLDER  # noqa: E402
from benchmarks.rows import BEST, WORKLOADS_BAR, reduced_rows, rows  # noqa: E402
from benchmarks.run import mean_of_workloads, with_mean  # noqa: E402
from benchmarks.workloads.measure import measure  # noqa: E402
from benchmarks.workloads.table import workloads  # noqa: E402
from benchmarks.workloads.work import Made, Workload  # noqa: E402

QUICK = [workload for workload in workloads() if workload.quick]


def best(name: str, value: float, threads: int = 1, column: str = BEST) -> Figure:
    return Figure("workloads", name, column, threads, "x", value, value, value, False, 1.0)


def test_names_are_unique() -> None:
    assert len({workload.name for workload in workloads()}) == len(workloads())


@pytest.mark.parametrize("name", MISSES)
def test_reasons_are_those_of_something_measured(name: str) -> None:
    measured = [one.name for one in (*rows(), *reduced_rows(), *workloads())]
    assert any(re.fullmatch(name, one) for one in measured)


@pytest.mark.parametrize("workload", QUICK, ids=lambda workload: workload.name)
def test_kernels_are_right(workload: Workload) -> None:
    torch.manual_seed(0)
    made = workload.make()
    check(workload.name, made.ours(*made.program.inputs), made.program.exact().outputs())


def test_a_wrong_kernel_is_not_timed() -> None:
    made = QUICK[0].make()
    wrong = Made(made.program, lambda *inputs: tuple(2 * x for x in made.ours(*inputs)), made.moved)
    with pytest.raises(WrongResult, match="wrong: result 0"):
        measure(Workload("wrong", lambda: wrong), None, 1, 1, quick=True)


def test_the_fastest_peer_counts() -> None:
    made = QUICK[0].make()
    ways = {"two times": lambda *inputs: [made.ours(*inputs) for _ in range(2)]}
    found = measure(
        Workload("w", lambda: Made(made.program, made.ours, made.moved, others=ways)), None, 1, 3, quick=True
    )
    ratios = {figure.column: figure.value for figure in found if figure.unit == "x"}
    assert ratios[BEST] == min(value for column, value in ratios.items() if column != BEST)
    assert set(ratios) == {"torch / ours", "two times / ours", BEST}


def test_the_mean_is_geometric_and_of_each_number_of_threads() -> None:
    means = mean_of_workloads(
        [best("a", 0.5), best("b", 2.0), best("a", 3.0, 2), best("a", 9.0, column="torch / ours")]
    )
    assert [f.value for f in means] == pytest.approx([1.0, 3.0])
    assert [(f.threads, f.bar, f.met) for f in means] == [(1, WORKLOADS_BAR, False), (2, WORKLOADS_BAR, True)]


def test_the_mean_is_of_all_results() -> None:
    """Also of those that an earlier run had measured."""
    first = with_mean(Results(ABOUT, (best("a", 0.5), best("b", 2.0))))
    again = with_mean(Results(ABOUT, (best("b", 8.0),)).completed(first))
    assert [(f.name, f.value) for f in again.figures] == [
        ("a", 0.5),
        ("b", 8.0),
        ("geometric mean", pytest.approx(2.0)),
    ]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_the_kept_means_are_of_the_kept_results(path: Path) -> None:
    results = Results.read(path)
    assert with_mean(results) == results


def test_the_page_shows_them() -> None:
    figures = (best("conv", 0.5), best("conv", 2.0, column="torch / ours"), best("geometric mean", 0.5))
    text = document({"intel-amx": Results(ABOUT, figures)}, [])
    assert "| conv | **0.50 (0.50 … 0.50)** | torch 2.00 |" in text
