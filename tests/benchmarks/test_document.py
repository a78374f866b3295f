"""The page about performance holds what the results say, and is what the command makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.document import DOCUMENT, PLOTS, document, drawn_on, pictures
from benchmarks.figures import Figure, Results
from benchmarks.kinds import read_kinds
from benchmarks.kinds_picture import NAME, picture
from benchmarks.rows import BEST

ABOUT: dict[str, Any] = {
    "date": "2026-01-02",
    "machine": {
        "cpu": "X1",
        "host": "x86_64",
        "cpus": 2,
        "load": [0.1, 0.2, 0.3],
        "device": {"arch": "x86_64"},
    },
    "versions": {"triton": "3.9.0", "torch": None},
    "command": "python -m benchmarks.run",
    "rounds": 3,
    "note": "",
}
SPEED = Figure("kernels", "softmax", "torch / ours", 1, "x", 1.25, 1.1, 1.3, less=False, bar=1.1)


def test_figures_stand_beside_their_bars() -> None:
    figures = (SPEED, replace(SPEED, threads=2, value=1.0), replace(SPEED, column="ours", unit="s", bar=None))
    text = document({"amd-avx2": Results(ABOUT, figures)}, ["matmul-fp32.png"])
    assert (
        "| softmax | torch | 1.1 / 1.1 | 1.25 (1.10 … 1.30) | **1.00 (1.10 … 1.30)** | 1.25 s / - |" in text
    )
    assert "| AMD, AVX2 | X1 | 2026-01-02 | 1 of 2 |" in text
    assert "![matmul-fp32](performance/matmul-fp32.png)" in text
    assert "triton 3.9.0" in text


def test_the_kind_with_the_most_figures_has_the_tables() -> None:
    older = Results({**ABOUT, "date": "2025-12-31", "machine": {**ABOUT["machine"], "cpu": "Old"}}, (SPEED,))
    newer = Results(ABOUT, (replace(SPEED, value=1.5), replace(SPEED, threads=2)))
    text = document({"intel-amx": newer, "amd-avx2": older}, [])
    assert "about Intel, AMX, which has the most figures" in text
    assert "| AMD, AVX2 | Old | 2025-12-31 | 1 of 1 |" in text
    assert "1.50 (1.10" in text
    mine, others = text.split("\n## AMD, AVX2\n")
    assert mine.count("1.25 (1.10") == 1  # the figure for two threads
    assert others.count("1.25 (1.10") == 1


def test_of_kinds_with_as_many_figures_the_first_by_name_has_the_tables() -> None:
    same = Results(ABOUT, (SPEED,))
    text = document({"intel-avx512": same, "intel-amx": same}, [])
    assert "about Intel, AMX, which has the most figures" in text


def test_machines_with_more_threads_have_tables_beside() -> None:
    gain = replace(SPEED, group="scaling", column="1 thread / 16 threads", threads=16, value=15.0, bar=13.6)
    many = Results(
        {**ABOUT, "command": "python -m benchmarks.run --threads 16"}, (replace(SPEED, threads=16), gain)
    )
    few = Results(ABOUT, (SPEED, replace(SPEED, name="relu"), replace(SPEED, name="tanh")))
    text = document({"intel-amx-16": many, "intel-amx": few}, [])
    assert "about Intel, AMX, which has the most figures" in text
    assert (
        "## Intel, AMX, 16 threads\n\nMeasured by `python -m benchmarks.run --threads 16` on 2026-01-02"
        in text
    )
    assert "| softmax | 1 thread / 16 threads | 16 | 15.0 (1.10 … 1.30) | ≥ 13.6 | met |" in text
    assert "16 threads" not in document({"intel-amx": few}, [])


def test_the_page_is_up_to_date() -> None:
    kinds = read_kinds()
    remedy = "run python -m benchmarks.document"
    assert DOCUMENT.read_text() == document(kinds, pictures(PLOTS), drawn_on(PLOTS)), remedy
    assert (PLOTS / NAME).read_text() == picture(kinds), remedy


def test_other_kinds_show_what_models_do_and_why_it_misses() -> None:
    few = Results(ABOUT, (SPEED, replace(SPEED, name="relu"), replace(SPEED, name="tanh")))
    work = replace(SPEED, group="workloads", name="convolution 3x3", column=BEST, bar=1.0)
    missed, met = replace(work, value=0.9), replace(work, name="batched products")
    text = document({"amd-avx2": few, "intel-amx": Results({**ABOUT, "note": "busy"}, (missed, met))}, [])
    assert "## Intel, AMX\n" in text
    assert "\nbusy\n" in text
    assert "| convolution 3x3 | **0.90" in text
    assert "- A convolution" in text
    assert "- A batched" not in text


def test_kernels_that_miss_have_reasons() -> None:
    missed = replace(SPEED, name="matmul bf16 1024", value=0.8)
    assert "- With AMX, a product of bf16" in document({"intel-amx": Results(ABOUT, (missed, SPEED))}, [])
    assert "With AMX, a product of bf16" not in document({"intel-amx": Results(ABOUT, (SPEED,))}, [])
