"""The sample, the folder of a run, and what the command says."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from triton_porting_kit.cli.app import app
from triton_porting_kit.conformance.command.mutants import parse_effort
from triton_porting_kit.conformance.execution.plan import PlanError
from triton_porting_kit.conformance.mutants import campaign, report, verdict
from triton_porting_kit.conformance.mutants.campaign import MutantsError, Order, Result, Sample
from triton_porting_kit.conformance.mutants.mutation import CPP, Mutation
from triton_porting_kit.conformance.mutants.score import Score
from triton_porting_kit.conformance.mutants.trying import Effort
from triton_porting_kit.conformance.mutants.verdict import Verdict


def mutation(number: int) -> Mutation:
    return Mutation("driver/host/native/x.cpp", CPP, "constant", number, number + 1, "2", 1, (1, 1))


EVERY = [mutation(number) for number in range(20)]
RANKED = sorted(EVERY, key=lambda one: one.rank(0))


def judged(one: Mutation, name: str = verdict.CAUGHT, suite: float = 120.0) -> Verdict:
    return Verdict(
        one, name, "diff", 1.0, tried=3, reaching=9, effort={"suite": suite, "stress": 0.0, "corpus": 60.0}
    )


def drained(sample: Sample, invalid: set[str]) -> list[str]:
    """What the sample hands out, where some turn out to be no mutants."""
    found = []
    while (one := sample.next()) is not None:
        found.append(one.name)
        sample.add(one, judged(one, verdict.INVALID if one.name in invalid else verdict.CAUGHT))
    return found


def test_what_does_not_compile_is_replaced_by_the_next() -> None:
    sample = Sample(EVERY, {}, Order(5))
    assert drained(sample, {RANKED[1].name, RANKED[5].name}) == [one.name for one in RANKED[:7]]
    assert [found.mutation for found in sample.verdicts()] == [RANKED[n] for n in (0, 2, 3, 4, 6)]
    assert sample.complete
    assert sample.passed_over == 2


def test_all_that_there_are_is_complete() -> None:
    sample = Sample(EVERY, {}, Order(50))
    assert len(drained(sample, set())) == len(sample.verdicts()) == 20
    assert sample.complete


def test_a_run_goes_on() -> None:
    before = [judged(RANKED[0]), judged(RANKED[1], verdict.INVALID), judged(RANKED[2])]
    sample = Sample(EVERY, {}, Order(4), before)
    assert drained(sample, set()) == [RANKED[3].name, RANKED[4].name]
    assert [found.mutation for found in sample.verdicts()] == [RANKED[n] for n in (0, 2, 3, 4)]


def test_survivors_are_tried_again_with_more_effort() -> None:
    before = [
        judged(RANKED[0]),
        judged(RANKED[1], verdict.EQUIVALENT),
        judged(RANKED[2], verdict.MISSED, 0.0),
    ]
    same = Sample(EVERY, {}, Order(3), before)
    assert drained(same, set()) == []
    more = Sample(EVERY, {}, Order(3, effort=Effort(suite=240.0)), before)
    assert len(more.verdicts()) == 3  # until it is tried again, what it was counts
    assert not more.complete
    assert drained(more, set()) == [RANKED[1].name]
    assert more.complete
    every = Sample(EVERY, {}, Order(3, effort=Effort(suite=0.0)), before)
    assert drained(every, set()) == [RANKED[1].name]


def test_jobs_wait_for_what_may_have_to_be_replaced() -> None:
    sample = Sample(EVERY, {}, Order(1))
    first = sample.next()
    assert first is not None
    found: list[Mutation | None] = []
    other = threading.Thread(target=lambda: found.append(sample.next()))
    other.start()
    other.join(0.2)
    assert found == []
    sample.add(first, judged(first, verdict.INVALID))
    other.join(60)
    assert found == [RANKED[1]]


def test_a_line_that_was_cut_short_is_forgotten(tmp_path: Path) -> None:
    lines = [json.dumps(judged(one).to_json()) for one in RANKED[:2]]
    path = tmp_path / campaign.VERDICTS
    path.write_text(f"{lines[0]}\n{lines[1][:40]}")
    assert [found.mutation for found in campaign.verdicts_in(tmp_path)] == [RANKED[0]]
    path.write_text(f"{lines[0][:40]}\n{lines[1]}\n")
    with pytest.raises(MutantsError, match="line 1, is no verdict"):
        campaign.verdicts_in(tmp_path)


def test_the_report(tmp_path: Path) -> None:
    found = [judged(RANKED[0]), judged(RANKED[1], verdict.MISSED), judged(RANKED[2], verdict.EQUIVALENT)]
    about = {"sources": "x", "seed": 0, "effort": {"suite": 1.0, "stress": 0.0, "corpus": 1.0, "also": 0.0}}
    result = Result(Score(found), 3, 7, 1000, about, True)
    text = report.write(result, tmp_path).read_text()
    assert "50.0% (1 of 2; 95% confidence 9.5 to 90.5%)" in text
    assert "7 others compile to the same code" in text
    assert f"`{RANKED[1].path}:1` constant" in text
    written = json.loads((tmp_path / report.JSON).read_text())
    assert [one["verdict"] for one in written["mutants"]] == [
        verdict.CAUGHT,
        verdict.MISSED,
        verdict.EQUIVALENT,
    ]
    assert written["score"]["levels"]["part"] == 1


def test_effort() -> None:
    assert parse_effort(["stress=10m", "suite=0"]) == Effort(suite=0.0, stress=600.0)
    for wrong in ("stress", "stress=x", "stress=-1", "speed=1", "suite=inf"):
        with pytest.raises(PlanError, match="KEY=SECONDS"):
            parse_effort([wrong])


@pytest.mark.parametrize("words", [["--mutants", "3"], ["--self-test", "--minutes", "3"]])
def test_options_that_do_not_fit(words: list[str]) -> None:
    done = CliRunner().invoke(app, ["conform", *words])
    assert done.exit_code != 0
    assert "--mutants requires --self-test" in str(done.exception) + done.output
