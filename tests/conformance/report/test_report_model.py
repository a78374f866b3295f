"""What a run comes to: levels, what is missing, what is partial."""

from __future__ import annotations

from typing import Any

import pytest
from report_runs import LISTINGS, error, everything, metadata, record, report, wrong

from triton_porting_kit.conformance import mandatory
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.model import LevelResult, Report
from triton_porting_kit.conformance.status import Status, Verdict


def language(found: Report) -> LevelResult:
    """The result of the level `language`."""
    return next(result for result in found.levels if result.level == "language")


def with_options(**options: Any) -> dict[str, Any]:
    """Metadata of a run with other options."""
    run = metadata()
    return {"options": {**run["options"], **options}}


def test_all_mandatory_checks_passed() -> None:
    found = report(everything())
    assert language(found).verdict is found.verdict is Verdict.PASS
    assert language(found).missing == ()
    assert language(found).counts == {Status.PASS: language(found).mandatory}


def test_one_failure_fails_the_level() -> None:
    records = everything()
    records[7] = record(records[7].name, wrong())
    found = report(records)
    assert language(found).verdict is found.verdict is Verdict.FAIL


def test_a_missing_check_fails_a_whole_run() -> None:
    """Nobody left it out: it has gone away."""
    records = everything()
    gone = records.pop(100)
    found = report(records)
    assert language(found).missing == (gone.name,)
    assert language(found).verdict is found.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    "partial",
    [
        with_options(select=["*add*"]),
        with_options(shard=[1, 4]),
        {"complete": False},
    ],
)
def test_a_partial_run_is_incomplete(partial: dict[str, Any]) -> None:
    found = report(everything()[:50], **partial)
    assert language(found).verdict is found.verdict is Verdict.INCOMPLETE
    assert len(language(found).missing) == language(found).mandatory - 50


def test_fewer_programs_than_usual_are_incomplete() -> None:
    records = everything("stress")[:10]
    assert report(records, **with_options(levels=["stress"])).verdict is Verdict.FAIL
    assert report(records, **with_options(levels=["stress"], stress=10)).verdict is Verdict.INCOMPLETE


def test_a_partial_run_that_fails_has_failed() -> None:
    found = report([record(everything()[0].name, wrong())], **with_options(shard=[1, 4]))
    assert found.verdict is Verdict.FAIL


def test_levels_that_were_not_asked_for_do_not_count() -> None:
    found = report(everything())
    assert {r.level: r.verdict for r in found.levels if not r.asked} == dict.fromkeys(
        ("registration", "runtime", "kernels", "stress"), Verdict.NOT_RUN
    )
    assert report(everything(), **with_options(levels=None)).verdict is Verdict.INCOMPLETE


def test_no_checks_are_no_pass() -> None:
    assert report([]).verdict is Verdict.NOT_RUN
    assert report([], **with_options(levels=None)).verdict is Verdict.NOT_RUN


def test_a_backend_that_refuses_everything_fails() -> None:
    unsupported = LISTINGS["unsupported"]
    records = [record(r.name, error(), listing=unsupported) for r in everything()]
    assert report(records).verdict is Verdict.FAIL


def test_declared_exceptions_are_told_from_passes() -> None:
    records = everything()
    records[3] = record(records[3].name, error(), listing=LISTINGS["unsupported"])
    assert report(records).verdict is Verdict.CONDITIONAL


def test_what_is_mandatory_follows_from_the_run() -> None:
    kit = report(everything())
    torch = report(everything(), device={"memory": "torch:cuda"})
    older = report(everything(), triton_version="3.6.0")
    compiled = report(everything(), **with_options(compile_only=True))
    assert len(kit.mandatory("runtime")) > len(torch.mandatory("runtime"))
    assert older.mandatory("language") == mandatory.names("language", (3, 6))
    assert compiled.mandatory("runtime") == mandatory.names("runtime", (3, 9), compile_only=True)


def test_another_version_of_the_suite_is_not_judged() -> None:
    with pytest.raises(ReportError, match="version 0 of the suite"):
        _ = report(everything(), suite_version="0").verdict


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ReportError, match="'main' is not a version"):
        _ = report(everything(), triton_version="main").verdict


def test_json_and_back() -> None:
    found = report(everything()[:20])
    assert Report.from_json(found.to_json()) == found
