"""The rows: what is promised of each, and that kernels are right where they are small."""

from __future__ import annotations

import pytest

from benchmarks.rows import COMPILED, EAGER, reduced_rows, rows

ROWS = {row.name: row for row in rows()}


def test_names_are_unique() -> None:
    assert len(ROWS) == len(rows())


def test_every_row_has_a_bar_for_one_thread_and_for_two() -> None:
    for row in [*rows(), *reduced_rows()]:
        assert EAGER in row.bars
        for bars in row.bars.values():
            assert set(bars) == {1, 2}


@pytest.mark.parametrize(
    ("name", "peer", "bars"),
    [
        ("vector add fp32 16M", EAGER, {1: 1.0, 2: 1.0}),
        ("softmax fp32 4096x1024", EAGER, {1: 1.2, 2: 1.2}),
        ("matmul bf16 2048", EAGER, {1: 0.9, 2: 1.1}),
        ("matmul fp16 512", EAGER, {1: 0.9, 2: 1.0}),
        ("GIoU loss fp32 256x512", COMPILED, {1: 1.0, 2: 1.0}),
        ("row sort fp32 4096x256", EAGER, {1: 0.7, 2: 0.7}),
    ],
)
def test_bars_are_the_promised_ones(name: str, peer: str, bars: dict[int, float]) -> None:
    assert ROWS[name].bars[peer] == bars


def test_work_is_what_the_shapes_say() -> None:
    assert ROWS["vector add fp32 16M"].moved == 3 * 4 * 2**24
    assert ROWS["matmul bf16 1024"].flops == 2 * 1024**3
    assert ROWS["matmul bf16 1024"].moved == 3 * 2 * 1024**2


def test_a_quick_run_has_every_kind_of_kernel() -> None:
    kinds = {row.case.kernel for row in rows()} - {"attention_backward"}
    assert {row.case.kernel for row in rows() if row.quick} == kinds
