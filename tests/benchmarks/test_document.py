"""The page about performance holds what the results say, and is what the command makes of them."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.document import DOCUMENT, PLOTS, RESULTS, document, pictures
from benchmarks.figures import Figure, Results

ABOUT = {
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
    text = document(Results(ABOUT, figures), ["matmul-fp32.png"])
    assert (
        "| softmax | torch | 1.1 / 1.1 | 1.25 (1.10 … 1.30) | **1.00 (1.10 … 1.30)** | 1.25 s / - |" in text
    )
    assert "1 of 2 targets are met" in text
    assert "![matmul-fp32](performance/matmul-fp32.png)" in text
    assert "triton 3.9.0" in text


def test_the_page_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == document(Results.read(RESULTS), pictures(PLOTS)), (
        "run python -m benchmarks.document"
    )
