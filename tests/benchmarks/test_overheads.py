"""Compile and launch figures are measured as they are named, and leave Triton as it was."""

from __future__ import annotations

import os
from typing import Any

import pytest
import triton.compiler
from triton import knobs

from benchmarks.apart import memory
from benchmarks.compiling import FRONT_END, STAGES, compile_figures, launcher_build_figure
from benchmarks.first_result import CACHED, COMPILED, IMPORTS, REFERENCE, first_result_figures
from benchmarks.launching import launch_figures
from benchmarks.measure import make_place
from benchmarks.tuning import tuning_figures

pytestmark = pytest.mark.usefixtures("cpu_backend")


@pytest.fixture
def place() -> Any:
    from triton.runtime import driver

    return make_place(driver.active.device)


def test_launch_figures_have_bars(place: Any) -> None:
    figures = launch_figures(place, 1, lambda name: True, 3)
    assert [figure.bar for figure in figures if figure.bar is not None] == [3e-6, 20e-9, 1.3]
    assert all(figure.value > 0 for figure in figures if figure.column != "beyond Python's call")


def test_only_what_is_wanted_is_measured(place: Any) -> None:
    assert {f.name for f in launch_figures(place, 1, lambda name: "end" in name, 3)} == {"end to end"}
    assert compile_figures(place, lambda name: False, quick=True) == []


def test_stages_add_up_and_nothing_stays_changed(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.compiling.QUICK_RUNS", 1)
    before = (
        triton.compiler.compile,
        triton.compiler.CompiledKernel._init_handles,
        os.environ.get("TRITON_CACHE_DIR"),
    )
    found = {
        f.column: f.value
        for f in compile_figures(place, lambda name: name == "compile vector add", quick=True)
    }
    assert sum(value for name, value in found.items() if name.startswith("stage ")) == pytest.approx(
        found[STAGES]
    )
    assert min(found[name] for name in (FRONT_END, "cold start", "load", "cache lookup")) > 0
    after = (
        triton.compiler.compile,
        triton.compiler.CompiledKernel._init_handles,
        os.environ.get("TRITON_CACHE_DIR"),
    )
    assert after == before
    assert knobs.compilation.listener is None


def test_memory_of_a_small_product_is_small() -> None:
    assert all(0 <= grown < 64 << 20 for grown in memory(128).values())


def test_building_launch_code_takes_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.compiling.QUICK_RUNS", 1)
    assert launcher_build_figure(quick=True).value > 0


def test_a_first_result_is_cheaper_without_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.first_result.QUICK_RUNS", 1)
    found = {f.column: f for f in first_result_figures(lambda name: name == "first result", quick=True)}
    assert list(found) == [COMPILED, CACHED, REFERENCE, IMPORTS, f"{REFERENCE} / {COMPILED}"]
    assert [figure.bar for figure in found.values()] == [0.9, 0.45, None, None, 0.8]
    assert found[REFERENCE].value > 0.1
    assert found[IMPORTS].value > 0.05
    assert 0.1 < found[CACHED].value < found[COMPILED].value * 1.5
    assert first_result_figures(lambda name: False, quick=True) == []


def test_an_autotuner_is_timed_with_one_process_and_with_two(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.tuning.QUICK_RUNS", 1)
    monkeypatch.setattr("benchmarks.tuning.os.sched_getaffinity", lambda process: {0, 1})
    found = tuning_figures(place, lambda name: "autotune" in name, quick=True)
    assert [(f.column, f.bar) for f in found] == [
        ("1 process", None),
        ("2 processes", None),
        ("1 process / 2 processes", 1.7),
    ]
    assert found[2].value == pytest.approx(found[0].value / found[1].value)
    assert tuning_figures(place, lambda name: False, quick=True) == []
