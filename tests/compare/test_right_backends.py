"""On a backend that is right and rounds otherwise nothing is named: without fused multiplications, AVX-512 and AMX."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_porting_kit.compare.judging import Status
from triton_porting_kit.compare.session import Outcome, Request, run

SUITE = Path(__file__).parent / "suite_program.py"
OTHERWISE = {
    "TRITON_DEFAULT_BACKEND": "cpu",
    "TPK_CPU_WITHOUT": "avx512,amx,fma",
    "TRITON_DEFAULT_FP_FUSION": "0",
}


def compared(folder: Path, *patterns: str) -> Outcome:
    request = Request(
        SUITE, patterns, keep_going=True, dest=folder / "kept", locate=False, environment=OTHERWISE
    )
    outcome = run(request, lambda judged, outcome: None)
    assert outcome.status == 0
    assert [(one.kernel, one.judgement.arrays) for one in outcome.wrong] == []
    return outcome


FEW = (
    "kernels/softmax/fp32-7x33",
    "kernels/layer-norm/fp32-3x70",
    "kernels/layer-norm-backward/fp32-3x70",
    "kernels/attention/fp16-1x1x32-causal",
    "language/functions/exp-fp32-tile_1000",
    "language/reductions/sum-fp16-tile_8x32_axis0",
)


def test_a_few_kernels(cpu_backend: None, tmp_path: Path) -> None:
    outcome = compared(tmp_path, *FEW, "--small")
    agreeing = [one.judgement for one in outcome.judged if one.judgement.status is Status.AGREES]
    assert len(agreeing) >= 5
    # Else this tries nothing but equality.
    assert any(not judgement.bits for judgement in agreeing)


@pytest.mark.slow
@pytest.mark.parametrize(
    "patterns",
    [("kernels/*",), ("demo",), ("language/*-fp32-*", "language/*-fp16-*", "language/*-bf16-*")],
    ids=["kernels", "demo", "language"],
)
def test_all_kernels(patterns: tuple[str, ...], cpu_backend: None, tmp_path: Path) -> None:
    """Those of the suite's level `kernels`, of the demo (which are the tutorials' and more), and of the language."""
    outcome = compared(tmp_path, *patterns)
    counts = outcome.counts
    print(f"{len(outcome.judged)} launches: {dict(counts)}")
    assert counts[Status.AGREES] > 0.9 * len(outcome.judged)
