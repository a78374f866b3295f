"""Operations by types, and failures by kind."""

from __future__ import annotations

import pytest
from report_runs import error, every_status, record, right, wrong

from triton_porting_kit.conformance.report.failures import groups
from triton_porting_kit.conformance.report.matrix import Cell, Mark, matrix
from triton_porting_kit.conformance.status import Status


def test_checks_are_counted_by_operation_and_type() -> None:
    statuses = {r.name: r.status for r in every_status()}
    (section,) = matrix(
        statuses, ["language/arithmetic/add-fp16-tile_1", "language/arithmetic/add-i8-tile_1"]
    )
    assert section.name == "arithmetic"
    marks = {op: {kind: cell.mark for kind, cell in cells.items()} for op, cells in section.rows.items()}
    assert marks["add"] == {
        "fp32": Mark.PARTIAL,
        "fp64": Mark.FAIL,
        "i8": Mark.FAIL,
        "i16": Mark.PARTIAL,
        "i32": Mark.FAIL,
        "fp16": Mark.NOT_RUN,
    }
    assert marks["own_sub"] == {"fp32": Mark.UNSUPPORTED, "fp64": Mark.DECLARED}
    assert section.columns == ["i8", "i16", "i32", "fp16", "fp32", "fp64"]
    assert section.total["fp32"].total == 5
    assert section.cell.mark is Mark.PARTIAL


@pytest.mark.parametrize(
    ("statuses", "mark", "label"),
    [
        ([Status.PASS, Status.PASS], Mark.PASS, "2"),
        ([Status.PASS, Status.FAIL], Mark.PARTIAL, "1/2"),
        ([Status.CRASH, Status.TIMEOUT], Mark.FAIL, "0/2"),
        ([Status.HARNESS_ERROR, None], Mark.FAIL, "0/2"),
        ([Status.UNSUPPORTED], Mark.UNSUPPORTED, "0/1"),
        ([Status.UNSUPPORTED, Status.PASS], Mark.DECLARED, "1/2"),
        ([Status.WAIVED, Status.EXPECTED_FAILURE, Status.UNEXPECTED_PASS], Mark.DECLARED, "0/3"),
        ([Status.PASS, None], Mark.NOT_RUN, "1/2"),
    ],
)
def test_marks(statuses: list[Status | None], mark: Mark, label: str) -> None:
    cell = Cell()
    for status in statuses:
        cell.add(status)
    assert (cell.mark, cell.label) == (mark, label)


def test_names_of_other_levels_are_left_out() -> None:
    assert matrix({"runtime/memory/size-1": Status.PASS}, []) == []


def test_failures_are_grouped_by_what_they_say() -> None:
    names = [f"language/arithmetic/add-{kind}-tile_1" for kind in ("i8", "i16", "i32", "i64", "fp32", "fp64")]
    records = [
        record(names[0], error("no operation 'tt.x' at 0xbeef")),
        record(names[1], error("no operation 'tt.y' at 0xcafe")),
        record(names[2], error("out of memory")),
        record(names[3], right(), wrong(3)),
        record(names[4], wrong(5)),
        record(names[5]),
        record("language/arithmetic/add-u8-tile_1", right(0)),
    ]
    found = groups(records)
    assert [len(group.records) for group in found] == [2, 1, 2, 1]
    assert found[0].stage == "compiled: ttir"
    assert found[0].message == "CompilationError: no operation 'tt.x' at 0xbeef"
    assert found[2].stage == "wrong result"
    assert "nothing was compared" in found[3].message
