"""Addresses with products of several arguments in 32 bits, as of images in NHWC."""

from __future__ import annotations

import re

import numpy as np
import triton
import triton.language as tl
from running import device
from ttir_source import ttir_text

from triton_porting_kit.abi.intervals import Op
from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.driver import DeviceArray

KINDS = {"x": "*fp32", "out": "*fp32", **dict.fromkeys(("n", "H", "W", "C"), "i32")}


@triton.jit
def doubled(x, out, n, H, W, C, BY: tl.constexpr, BX: tl.constexpr, BC: tl.constexpr):
    """A rectangle of image n, whose rows are in a tensor."""
    rows, pixels = tl.arange(0, BY)[:, None, None], tl.arange(0, BX)[None, :, None]
    channels = tl.arange(0, BC)[None, None, :]
    at = ((n * H + rows) * W + pixels) * C + channels
    inside = (rows < H) & (pixels < W) & (channels < C)
    tl.store(out + at, tl.load(x + at, inside, 0.0) * 2, inside)


def test_a_launch_promises_that_they_fit() -> None:
    source = ttir_text(doubled, KINDS, BY=1 << 2, BX=8, BC=16)
    promised, other = (str(import_ttir(source, promises=given)) for given in (True, False))
    names = re.compile(r'"(tpk\.(?:load|store|gather|scatter))"')
    assert names.findall(promised) == ["tpk.load", "tpk.store"]
    assert names.findall(other) == ["tpk.gather", "tpk.scatter"]
    (steps,) = re.findall(r"tpk\.promises = array<i64: ([^>]*)>", promised)
    assert [int(step) for step in steps.split(", ")][::3].count(Op.FITS) >= 1
    assert "tpk.promises" not in other


def test_where_they_do_not_fit_they_wrap_around() -> None:
    """Of the second launch, rows lie 2**32 elements apart, which is 0 in 32 bits; it takes the version that knows."""
    values = np.random.default_rng(3).standard_normal((3, 4, 8, 16)).astype(np.float32)
    for n, height, width, channels, begin, reach in ((2, 4, 8, 16, 1024, 512), (5, 1, 1 << 28, 16, 0, 128)):
        x, out = (DeviceArray.from_numpy(array, device()) for array in (values, np.zeros_like(values)))
        doubled[(1,)](x, out, n, height, width, channels, BY=4, BX=8, BC=16)
        expected = np.zeros(values.size, np.float32)
        expected[begin : begin + reach] = values.ravel()[begin : begin + reach] * 2
        assert (out.numpy().ravel() == expected).all()
