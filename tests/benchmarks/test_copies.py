"""Copies of a kernel in processes of their own: what they do together, and how they fail."""

from __future__ import annotations

import time

import pytest

torch = pytest.importorskip("torch")

from triton.runtime import driver  # noqa: E402

from benchmarks import copies as module  # noqa: E402
from benchmarks.copies import Copies, CopiesFailed, copies_figures  # noqa: E402
from benchmarks.measure import checked_call, make_place  # noqa: E402
from benchmarks.rows import rows  # noqa: E402

ROW = next(row for row in rows() if row.name == "matmul fp32 512")


def test_copies_do_what_one_process_does_and_can_be_asked_again() -> None:
    place = make_place(driver.active.device)
    call, _, _ = checked_call(ROW.case, place)
    start = time.perf_counter()
    call()
    alone = 1 / (time.perf_counter() - start)
    with Copies(2, reduced=False) as copies:
        with pytest.raises(CopiesFailed, match="no row is prepared"):
            copies.rate(0.1)
        with pytest.raises(CopiesFailed, match="KeyError: 'matmul of nothing'"):
            copies.prepare("matmul of nothing")
        copies.prepare(ROW.name)
        # The machine is not idle, and has one CPU or two: only the order of magnitude is known.
        assert copies.rate(0.2) > 0.05 * alone
        process = copies._process
    assert process is not None
    assert process.poll() == 0


def test_a_figure_says_how_many_processes_it_is_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RUNS", 2)
    monkeypatch.setattr(module, "SECONDS", 0.05)
    with Copies(2, reduced=False) as copies:
        (figure,) = copies_figures(ROW, make_place(driver.active.device), copies)
    assert (figure.group, figure.name, figure.column, figure.threads) == (
        "scaling", ROW.name, "of 2 processes", 2,
    )  # fmt: skip
    assert (figure.less, figure.bar) == (False, 0.85)
    assert 0.05 < figure.value < 20


def test_a_copy_that_fails_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise ValueError("no such kernel")

    with pytest.raises(CopiesFailed, match="ended without a result"):
        module._rate_of_copies(fails, 2, 0.01)
    assert "no such kernel" in capfd.readouterr().err
