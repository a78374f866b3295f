"""Configurations that give the same code are tried once, slow ones are left early, and lost ones released."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import OptionError
from triton_porting_kit.toolchain import compat, together, tuning
from triton_porting_kit.toolchain.tuning import distinct

UNUSED = {"num_warps", "num_stages"}


def _config(block: int, warps: int = 4, stages: int = 2, **more: Any) -> triton.Config:
    return triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages, **more)


def test_the_first_of_equal_ones_is_kept() -> None:
    configs = [_config(64, 4), _config(64, 8), _config(128, 8), _config(64, 1, 5)]
    assert distinct(configs, UNUSED) == [configs[0], configs[2]]


def test_what_is_used_makes_a_difference() -> None:
    configs = [_config(64, 4), _config(64, 8)]
    assert distinct(configs, {"num_stages"}) == configs
    hooked = [_config(64), _config(64, 8, pre_hook=lambda arguments: None)]
    assert distinct(hooked, UNUSED) == hooked


CONFIGS = [_config(block, warps, stages) for block in (64, 128) for warps in (1, 4) for stages in (1, 2)]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def double(X, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < n)
    tl.store(X + i, x * 2, mask=i < n)


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def fill(X, n, BLOCK: tl.constexpr, num_warps: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(X + i, num_warps, mask=i < n)


@pytest.mark.parametrize(("kernel", "count"), [(double, 2), (fill, 4)])
def test_the_autotuner_tries_them_once(device: Any, kernel: Any, count: int) -> None:
    """Two sizes of blocks; a kernel that takes the count of warps as a parameter sees both counts."""
    x = DeviceArray.from_numpy(np.ones(100, np.float32), device)
    kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
    assert len(kernel.configs_timings) == count
    assert len(compat.tuned_kernels(kernel)) == 1  # those of the others were released


class Clock:
    """Stands for the clock of the autotuner's timing: it stands still but for what a configuration takes, and for a
    millisecond whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 1e-3
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("triton_porting_kit.driver.benchmark.time", found)
    return found


def _calls(clock: Clock, counts: dict[int, int], seconds: dict[int, float], block: int) -> triton.Config:
    """A configuration whose calls are counted and take some time more."""

    def before(arguments: dict[str, Any]) -> None:
        counts[block] = counts.get(block, 0) + 1
        clock.now += seconds[block]

    return _config(block, pre_hook=before)


def _tuned(
    clock: Clock, seconds: dict[int, float], device: Any, **options: Any
) -> tuple[Any, dict[int, int]]:
    """The autotuner after a launch with configurations that take so long, and how often each was called."""
    counts: dict[int, int] = {}

    def scale(X, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(X + i, tl.load(X + i, mask=i < n) * 2, mask=i < n)

    configs = [_calls(clock, counts, seconds, block) for block in seconds]
    tuner = triton.autotune(configs=configs, key=["n"], **options)(triton.jit(scale))
    x = DeviceArray.from_numpy(np.ones(100, np.float32), device)
    tuner[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
    return tuner, counts


def test_a_slow_configuration_is_left_early(clock: Clock, device: Any) -> None:
    tuner, counts = _tuned(clock, {64: 0.0, 128: 0.3}, device)
    assert tuner.best_config.kwargs == {"BLOCK": 64}
    assert counts[128] == 2  # one that compiles, and one that says enough
    assert counts[64] >= 4


def test_long_calls_are_not_repeated_where_a_program_names_times(clock: Clock, device: Any) -> None:
    """Triton's own function, which such programs get, calls at least eight times."""
    with pytest.warns(DeprecationWarning, match="warmup, rep"):
        _, counts = _tuned(clock, {64: 0.04, 128: 0.4}, device, warmup=1, rep=2)
    assert counts[128] == 2


def test_the_first_is_taken_without_timing(
    clock: Clock, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(tuning.TUNING, "first")
    tuner, counts = _tuned(clock, {128: 0.03, 64: 0.0}, device)
    assert tuner.best_config.kwargs == {"BLOCK": 128}
    assert counts == {128: 2}  # one to see that it compiles, and the launch
    assert [times[0] for times in tuner.configs_timings.values()] == [0.0, math.inf]


def test_the_variable_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tuning.TUNING, "last")
    with pytest.raises(OptionError, match=r"TPK_TUNING is 'last'\n.*set it to full or first"):
        tuning.how()


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[int, int]]:
    """How many kernels two processes were to compile at once each time, and how many the cache has then."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(together.PROCESSES, "2")
    counts: list[tuple[int, int]] = []
    share = together._share

    def watched(calls: Any, count: int) -> None:
        share(calls, count)
        counts.append((len(calls), len(list(tmp_path.glob("*/__grp__*")))))

    monkeypatch.setattr(together, "_share", watched)
    return counts


def _triple(X, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK != 32)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(X + i, tl.load(X + i, mask=i < n) * 3, mask=i < n)


def _tripled(blocks: tuple[int, ...], device: Any) -> Any:
    tuner = triton.autotune(configs=[_config(block) for block in blocks], key=["n"])(triton.jit(_triple))
    x = DeviceArray.from_numpy(np.ones(100, np.float32), device)
    tuner[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
    value = x.numpy()[0]
    assert value >= 3
    assert (x.numpy() == value).all()
    return tuner


def test_all_are_compiled_at_once(device: Any, shared: list[tuple[int, int]]) -> None:
    tuner = _tripled((64, 128, 256), device)
    assert shared == [(3, 3)]
    assert len(tuner.configs_timings) == 3
    assert len(compat.tuned_kernels(tuner)) == 1
    # Another function of the same text finds them in the cache, and nothing is shared out.
    _tripled((64, 128, 256), device)
    assert shared == [(3, 3)]


def test_one_that_cannot_be_compiled_has_lost(device: Any, shared: list[tuple[int, int]]) -> None:
    tuner = _tripled((32, 64, 128), device)
    assert shared == [(3, 2)]
    assert [math.isinf(times[0]) for times in tuner.configs_timings.values()] == [True, False, False]


def test_one_process_compiles_in_turn(
    device: Any, shared: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(together.PROCESSES, "1")
    _tripled((64, 128), device)
    assert shared == []
