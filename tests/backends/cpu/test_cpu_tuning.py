"""Configurations that give the same code are tried once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray
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
