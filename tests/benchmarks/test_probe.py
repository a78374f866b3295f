"""The roof: loops that are not optimised away, and figures that a computer can have."""

from __future__ import annotations

import re

import pytest

from benchmarks import probe
from benchmarks.probe import Roof
from triton_porting_kit.compiler import CpuTarget


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PROBE_RUNS", 3)
    monkeypatch.setattr(probe, "PROBE_SECONDS", 2e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_figures_are_those_of_a_computer(threads: int) -> None:
    roof = Roof(threads)
    assert 1e7 < roof.bandwidth(1 << 20) < 1e13
    peak = roof.peak("float32")
    assert peak is not None
    assert 1e8 < peak < 1e14
    assert roof.peak("float16") == peak


def test_triad_computes_what_it_says() -> None:
    a, b, c = (probe._aligned(256) for _ in range(3))
    c[:] = range(256)
    for nontemporal in (False, True):
        a[:] = 0
        probe._triad(nontemporal)(a.ctypes.data, b.ctypes.data, c.ctypes.data, 256, 1)
        assert (a == b + c).all()


def test_the_slower_of_both_limits() -> None:
    roof = Roof(1)
    roof.bandwidth = lambda size: 1e9  # type: ignore[method-assign]
    roof.peak = lambda dtype: 1e9 if dtype == "float32" else None  # type: ignore[method-assign]
    assert roof.seconds(1000, 0, "float32") == pytest.approx(1e-6)
    assert roof.seconds(1000, 5000, "float32") == pytest.approx(5e-6)
    assert roof.seconds(9000, 5000, "float32") == pytest.approx(9e-6)
    assert roof.seconds(1000, 5000, "bfloat16") is None


def test_the_roof_is_that_of_the_features_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPK_CPU_WITHOUT", "avx512,amx")
    assert not re.search(
        r"<16 x (float|i32)>|x86_amx", "".join(probe.peak_ir(p) for p in probe._peaks().values())
    )
    roof = Roof(1)
    assert roof.peak("bfloat16") == roof.peak("float32")  # widened
    assert (roof.peak("int8") is None) == ("avx2" not in CpuTarget.host().features)
