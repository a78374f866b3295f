"""A row is checked, then timed beside its peers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.measure import OURS, WrongResult, checked_call, make_place, measure
from benchmarks.rows import EAGER, Row
from triton_porting_kit.kernels import cases

pytestmark = pytest.mark.usefixtures("cpu_backend")
ROW = Row("softmax", cases.softmax_case(8, 100, "float32"), {EAGER: {1: 0.0001}}, 8 * 800)


@pytest.fixture
def place() -> Any:
    from triton.runtime import driver

    return make_place(driver.active.device)


class FlatRoof:
    """A machine that moves a byte in a nanosecond."""

    def bandwidth(self, size: int) -> float:
        """Bytes per second."""
        return 1e9

    def seconds(self, moved: int, flops: int, dtype: str) -> float:
        """The least time."""
        return moved / 1e9


def test_a_row_has_times_and_ratios(place: Any) -> None:
    pytest.importorskip("torch")
    roof: Any = FlatRoof()
    found = {figure.column: figure for figure in measure(ROW, place, roof, 1, 3, quick=True)}
    assert set(found) == {OURS, EAGER, "torch / ours", "torch / ours, fastest runs", "of the roof"}
    assert found["torch / ours"].met
    assert found["torch / ours"].value == pytest.approx(found[EAGER].value / found[OURS].value)
    assert found["of the roof"].value == pytest.approx(6400e-9 / found[OURS].value)


def test_a_wrong_result_is_not_timed(place: Any) -> None:
    case = replace(ROW.case, reference=lambda x: x)
    with pytest.raises(WrongResult, match="softmax"):
        checked_call(case, place)
