"""Joining shards."""

from __future__ import annotations

from typing import Any

import pytest
from report_runs import KERNELS, everything, metadata, record, report, wrong

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report import document
from triton_porting_kit.conformance.report.errors import ReportError
from triton_porting_kit.conformance.report.merge import merge
from triton_porting_kit.conformance.report.model import Report
from triton_porting_kit.conformance.report.verify import disagreements
from triton_porting_kit.conformance.status import Status, Verdict


def shard(number: int, count: int, records: list[Record], **fields: Any) -> Report:
    """The report of a shard."""
    options = KERNELS["options"] | {"shard": [number, count]}
    return report(records[number - 1 :: count], options=options, **fields)


def test_shards_are_one_run() -> None:
    records = everything("kernels")
    merged = merge([shard(k, 3, records) for k in (2, 3, 1)])
    assert merged.report.verdict is Verdict.PASS
    assert (merged.missing, merged.duplicates, merged.shards) == ((), (), ())
    assert len(merged.report.records) == len(records)
    assert merged.report.options["shard"] is None
    assert disagreements(document.document_of(merged.report)) == []


def test_a_lost_shard_is_named() -> None:
    records = everything("kernels")
    merged = merge([shard(k, 3, records) for k in (1, 3)])
    assert merged.report.verdict is Verdict.INCOMPLETE
    assert merged.shards == (2,)
    assert sorted(merged.missing) == sorted(r.name for r in records[1::3])


def test_merging_goes_on() -> None:
    records = everything("kernels")
    first = merge([shard(k, 3, records) for k in (1, 3)]).report
    assert merge([first, shard(2, 3, records)]).report.verdict is Verdict.PASS


def test_of_duplicates_the_worst_counts() -> None:
    records = everything("kernels")
    again = [record(records[0].name, wrong())]
    for parts in ([records, again], [again, records]):
        merged = merge([report(part, **KERNELS) for part in parts])
        assert merged.duplicates == (records[0].name,)
        assert merged.report.statuses[records[0].name] is Status.FAIL
        assert merged.report.verdict is Verdict.FAIL


def test_what_one_part_lost_another_may_have() -> None:
    records = everything("kernels")
    names = tuple(r.name for r in records)
    cut = Report(run=metadata(complete=False, **KERNELS), records=tuple(records[:10]), not_run=names[10:])
    assert merge([cut]).report.not_run == names[10:]
    merged = merge([cut, report(records[10:], **KERNELS)])
    assert merged.report.not_run == ()
    assert merged.report.verdict is Verdict.PASS


def test_levels_are_joined() -> None:
    options = {"levels": ["runtime"]}
    runtime = report(everything("runtime"), options=options)
    merged = merge([runtime, report(everything("kernels"), **KERNELS)])
    assert merged.report.asked == ("runtime", "kernels")
    assert merged.report.verdict is Verdict.PASS


def test_figures_are_joined() -> None:
    first = Report(run=metadata(), records=(), performance={"launch": 1.0, "kernels": [{"kernel": "a"}]})
    second = Report(run=metadata(), records=(), performance={"launch": 2.0, "kernels": [{"kernel": "b"}]})
    assert merge([first, second]).report.performance == {
        "launch": 1.0,
        "kernels": [{"kernel": "a"}, {"kernel": "b"}],
    }


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"seed": 3}, "seed is 3, not 0"),
        ({"backend": "other"}, "backend is 'other'"),
        ({"suite_version": "0"}, "suite_version is '0'"),
        ({"triton_version": "3.8.0"}, "triton_version is '3.8.0'"),
        ({"commit": None}, "commit is None"),
        ({"device": {"memory": "kit", "name": "NPU Two"}}, "device's name is 'NPU Two'"),
        ({"profile": {**metadata()["profile"], "waivers": []}}, "profile is"),
        ({"options": {"levels": ["language"], "select": ["add"]}}, "option select is"),
        ({"options": {"levels": ["language"], "shard": [1, 5]}}, "number of shards is 5"),
    ],
)
def test_parts_of_other_runs_are_refused(fields: dict[str, Any], what: str) -> None:
    with pytest.raises(ReportError, match="report 2 is not part of the same run as report 1") as error:
        merge([report([]), report([], **fields)])
    assert what in str(error.value)


def test_the_place_of_a_profile_may_differ() -> None:
    profile = {**metadata()["profile"], "source": "/elsewhere/conformance.toml"}
    merge([report([]), report([], profile=profile)])


def test_nothing_cannot_be_merged() -> None:
    with pytest.raises(ReportError, match="nothing to merge"):
        merge([])
