"""What changed between two runs."""

from __future__ import annotations

from report_runs import LISTINGS, crash, error, metadata, record, report, wrong

from triton_porting_kit.conformance.record import Record
from triton_porting_kit.conformance.report.diff import diff

NAMES = [f"language/arithmetic/add-{kind}-tile_1" for kind in ("i8", "i16", "i32", "i64", "fp32", "fp64")]


def names(old: list[Record], new: list[Record]) -> tuple[dict[str, list[str]], list[str]]:
    """The groups that are not empty, by name of the check; and what got worse."""
    found = diff(report(old, complete=False), report(new, complete=False))
    groups = {title: [c.name for c in changes] for title, changes in found.groups.items() if changes}
    return groups, [change.name for change in found.worse]


def test_the_same_run_has_no_difference() -> None:
    records = [record(NAMES[0]), record(NAMES[1], wrong())]
    assert names(records, records) == ({}, [])


def test_changes_are_grouped() -> None:
    unsupported = LISTINGS["unsupported"]
    old = [
        record(NAMES[0]),
        record(NAMES[1], wrong()),
        record(NAMES[2], wrong()),
        record(NAMES[3]),
        record(NAMES[4], error(), listing=unsupported),
    ]
    new = [
        record(NAMES[0], crash()),
        record(NAMES[1]),
        record(NAMES[2], crash()),
        record(NAMES[4]),
        record(NAMES[5]),
    ]
    groups, worse = names(old, new)
    assert groups == {
        "newly failing": [NAMES[0]],
        "newly passing": [NAMES[1], NAMES[4]],
        "changed": [NAMES[2]],
        "new": [NAMES[5]],
        "gone": [NAMES[3]],
    }
    assert worse == [NAMES[0], NAMES[3]]


def test_claiming_less_is_worse() -> None:
    refused = [record(NAMES[0], error(), listing=LISTINGS["unsupported"])]
    assert names([record(NAMES[0])], refused)[1] == [NAMES[0]]
    assert names(refused, [record(NAMES[0])])[1] == []


def test_new_failures_are_worse_than_nothing() -> None:
    assert names([], [record(NAMES[0], wrong()), record(NAMES[1])])[1] == [NAMES[0]]


def test_levels_that_were_not_run_again_are_not_gone() -> None:
    options = metadata()["options"] | {"levels": ["runtime"]}
    found = diff(report([record(NAMES[0])]), report([record("runtime/memory/size-1")], options=options))
    assert found.groups["gone"] == []
    assert [change.name for change in found.groups["new"]] == ["runtime/memory/size-1"]


def test_facts_and_verdicts_are_compared() -> None:
    found = diff(report([record(NAMES[0])], complete=False), report([record(NAMES[0], wrong())], seed=4))
    assert found.facts == [("seed", 0, 4)]
    assert found.verdicts == [("language", "incomplete", "fail")]
    (change,) = found.worse
    assert str(change).startswith(f"{NAMES[0]}: pass -> fail  result 0 (fp32): 3 of 8 differ")


def test_suites_of_other_versions_can_be_compared() -> None:
    found = diff(report([record(NAMES[0])], suite_version="0"), report([record(NAMES[0])]))
    assert found.verdicts == []
    assert found.facts[0] == ("suite_version", "0", "1")
