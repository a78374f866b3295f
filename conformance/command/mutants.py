"""`tpk conform --self-test --mutants N`: the score of the suite on mechanical mutants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from rich.console import Console

from triton_porting_kit.conformance.command.request import Request
from triton_porting_kit.conformance.execution.plan import PlanError
from triton_porting_kit.conformance.mutants import campaign, report
from triton_porting_kit.conformance.mutants.score import DEMANDED, DEMANDED_WITH_STRESS
from triton_porting_kit.conformance.mutants.trying import Effort

FOLDER = Path("conformance-report") / "mutants"
_UNITS = {"s": 1.0, "m": 60.0}


def parse_effort(items: Sequence[str]) -> Effort:
    """Parse efforts such as ``suite=120`` (seconds) or ``stress=10m`` (minutes). Raises `PlanError`."""
    found = Effort()
    names = [field.name for field in fields(Effort)]
    for item in items:
        name, _, text = item.partition("=")
        factor = _UNITS.get(text[-1:])
        try:
            seconds = float(text[:-1]) * factor if factor else float(text)
        except ValueError:
            seconds = -1.0
        if name not in names or not 0 <= seconds < float("inf"):
            raise PlanError(
                f"--effort {item!r} is not KEY=SECONDS with one of the keys {', '.join(names)}, for example "
                "stress=600 or stress=10m"
            )
        found = replace(found, **{name: seconds})
    return found


def score_by_mutants(request: Request) -> int:
    """Try the sample and write the report. Returns 0 if it is complete and reaches the required scores."""
    console = Console(quiet=request.quiet)

    def show(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    folder = request.report or FOLDER
    order = campaign.Order(
        count=request.mutants,
        seed=request.seed,
        jobs=request.jobs,
        folder=folder,
        select=request.selections or ("*",),
        minutes=request.minutes,
        effort=parse_effort(request.effort),
    )
    result = campaign.run(order, show)
    page = report.write(result, folder)
    for line in report.summary(result):
        show(line)
    show(f"surviving mutants with their changes: {page}")
    passed = result.complete and result.score.levels.value >= DEMANDED
    if order.effort.stress:
        passed = passed and result.score.with_stress.value >= DEMANDED_WITH_STRESS
    return 0 if passed else 1
