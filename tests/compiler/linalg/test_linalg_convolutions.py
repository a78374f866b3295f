"""Implicit matrix products become `linalg.conv_2d_nhwc_hwcf` where that is proved, and compute the same numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from convolution_kernels import by_loops, by_one_loop, of_images, of_rectangles, written_out
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, artefacts, cpu_pipeline, linalg_stage
from triton_porting_kit.compiler.summary import MULTIPLY_ADDS, summarised
from triton_porting_kit.driver import DeviceArray

TILES = {"BX": 16, "BC": 16, "BF": 16}
FILTER = {"R": 3, "S": 3, "STRIDE": 1, "PAD": 1, "DIL": 1}
NAMED = "linalg.conv_2d_nhwc_hwcf"


def structured(kernel: Any, **constexprs: int) -> str:
    kinds = {"x": "*fp16", "w": "*fp16", "out": "*fp32"}
    kinds |= {name: "i32" for name in kernel.arg_names if name not in kinds and name not in constexprs}
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    return str(front.run(ttir_text(kernel, kinds, **constexprs), {})["structured"])


def form(kernel: Any, convention: str = "triton-shared", **constexprs: int) -> str:
    return str(linalg_stage(convention).run(structured(kernel, **constexprs), {}))


# --- the named operation ------------------------------------------------------------------------------


def named(text: str) -> tuple[str, str, str, str]:
    """Strides, dilations, and the types of window and weights of the only convolution."""
    numbers = r"dense<(\[?[\d, ]+\]?)> : tensor<2xi64>"
    pattern = rf"{NAMED} \{{dilations = {numbers}, strides = {numbers}\}} ins\(.*? : (\S+), (\S+)\) outs"
    ((dilations, strides, window, weights),) = re.findall(pattern, text)
    return strides, dilations, window, weights


@pytest.mark.parametrize(
    ("kernel", "given", "expected"),
    [
        (by_loops, {}, ("1", "1", "tensor<1x3x18x16xf16>", "tensor<3x3x16x16xf16>")),
        (by_loops, {"STRIDE": 2}, ("[1, 2]", "1", "tensor<1x3x33x16xf16>", "tensor<3x3x16x16xf16>")),
        (by_loops, {"R": 1, "S": 5}, ("1", "1", "tensor<1x1x20x16xf16>", "tensor<1x5x16x16xf16>")),
        (written_out, {"DIL": 2}, ("1", "[1, 2]", "tensor<1x3x20x16xf16>", "tensor<3x3x16x16xf16>")),
        (by_one_loop, {"C": 64}, ("1", "1", "tensor<1x3x18x16xf16>", "tensor<3x3x16x16xf16>")),
        (of_rectangles, {"BY": 4}, ("1", "1", "tensor<1x6x18x16xf16>", "tensor<3x3x16x16xf16>")),
        (of_images, {"BY": 4}, ("1", "1", "tensor<1x6x18x16xf16>", "tensor<3x3x16x16xf16>")),
        (
            of_rectangles,
            {"BY": 4, "STRIDE": 2, "R": 2},
            ("2", "1", "tensor<1x8x33x16xf16>", "tensor<2x3x16x16xf16>"),
        ),
    ],
)  # fmt: skip
def test_strides_and_dilations_are_attributes(
    kernel: Any, given: dict[str, int], expected: tuple[str, ...]
) -> None:
    text = form(kernel, **{**TILES, **FILTER, **given})
    assert named(text) == expected
    assert "linalg.matmul" not in text


def test_the_summary_counts_them() -> None:
    source = structured(of_rectangles, **TILES, **FILTER, BY=4)
    made = linalg_stage("triton-shared").run(source, {})
    found = summarised(artefacts.parse_structured(source), artefacts.parse_mlir(str(made)), "linalg")
    assert found.total(MULTIPLY_ADDS, NAMED) == found.total(MULTIPLY_ADDS) == 9 * 64 * 16 * 16
    assert [row.part for row in found.rows if row.what == "product"] == [1]


def test_a_convention_whose_compiler_has_no_convolution_keeps_products() -> None:
    assert NAMED not in form(by_loops, "ascend", **TILES, **FILTER)
    assert "linalg.matmul" in form(by_loops, "ascend", **TILES, **FILTER)
    assert NAMED in form(by_loops, "iree", **TILES, **FILTER)


# --- numbers ------------------------------------------------------------------------------------------


def convolved(x: Any, w: Any, stride: int, pad: int, dilation: int) -> Any:
    """Of x (N, C, H, W) and w (F, C, R, S), in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    reach = [dilation * (size - 1) + 1 for size in w.shape[2:]]
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    return np.einsum("ncyxrs,fcrs->nfyx", windows, w.astype(np.float64))


def launched(kernel: Any, x: Any, w: Any, given: dict[str, int]) -> tuple[Any, str]:
    """The result of a kernel of `convolution_kernels`, and its linalg form."""
    from running import device

    def put(values: Any) -> DeviceArray:
        return DeviceArray.from_numpy(np.ascontiguousarray(values), device())

    (count, channels, height, width), (filters, _, r, s) = x.shape, w.shape
    stride, pad, dilation = given["STRIDE"], given["PAD"], given["DIL"]
    oh, ow = (
        (size + 2 * pad - dilation * (reach - 1) - 1) // stride + 1
        for size, reach in ((height, r), (width, s))
    )
    constexprs = {**TILES, **given, "R": r, "S": s}
    sizes = [height, width, oh, ow, channels, filters]
    grid = (triton.cdiv(ow, TILES["BX"]), triton.cdiv(filters, TILES["BF"]), count * oh)
    if kernel in (of_rectangles, of_images):
        constexprs["BY"] = 4
        grid = (triton.cdiv(oh, 4), grid[0], count)
    if kernel in (by_loops, by_one_loop, of_images):
        if kernel == by_one_loop:
            del sizes[4]
            constexprs["C"] = channels
        out = put(np.full((count, oh, ow, filters), np.nan, np.float32))
        arrays = put(x.transpose(0, 2, 3, 1)), put(w.transpose(2, 3, 1, 0)), out
        compiled = kernel[grid](*arrays, *sizes, **constexprs)
        return out.numpy().transpose(0, 3, 1, 2), compiled.asm["linalg"]
    out = put(np.full((count, filters, oh, ow), np.nan, np.float32))
    arrays = put(x), put(w), out
    strides = [step for array in arrays for step in array.strides]
    compiled = kernel[grid](*arrays, *sizes, *strides, **constexprs)
    return out.numpy(), compiled.asm["linalg"]


SHAPES = [
    ((2, 16, 5, 21), (9, 16, 3, 3), {"STRIDE": 1, "PAD": 1, "DIL": 1}),
    ((1, 16, 9, 18), (16, 16, 3, 3), {"STRIDE": 1, "PAD": 3, "DIL": 2}),
    ((1, 16, 9, 35), (5, 16, 5, 2), {"STRIDE": 1, "PAD": 0, "DIL": 1}),
    ((1, 16, 11, 38), (16, 16, 2, 4), {"STRIDE": 2, "PAD": 2, "DIL": 1}),
]


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize(
    "kernel", [by_loops, written_out, by_one_loop, of_rectangles, of_images], ids=lambda k: str(k.__name__)
)
@pytest.mark.parametrize(("x", "w", "given"), SHAPES, ids=lambda value: str(value))
def test_numbers(kernel: Any, x: tuple[int, ...], w: tuple[int, ...], given: dict[str, int]) -> None:
    random = np.random.default_rng(7)
    channels = {by_one_loop: 32, of_rectangles: 11, of_images: 11}.get(kernel, 19)
    x, w = (x[0], channels, *x[2:]), (w[0], channels, *w[2:])
    pixels, weights = (random.standard_normal(shape).astype(np.float32) for shape in (x, w))
    found, text = launched(kernel, pixels, weights, given)
    expected = convolved(pixels, weights, given["STRIDE"], given["PAD"], given["DIL"])
    scale = convolved(abs(pixels), abs(weights), given["STRIDE"], given["PAD"], given["DIL"])
    assert (abs(found - expected) <= 1e-5 * scale + 1e-6).all()
    # Filters that are written out with a stride of 2 have bounds that were rounded each on its own.
    assert (NAMED in text) == (kernel != written_out or given["STRIDE"] == 1)


# --- what is no convolution ---------------------------------------------------------------------------


@triton.jit
def changed(
    x, w, out, W, xw, wc, wf,
    S: tl.constexpr, BX: tl.constexpr, BC: tl.constexpr, BF: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """One row of a convolution, in which `HOW` changes something."""
    ox, c, f = tl.program_id(0) * BX + tl.arange(0, BX), tl.arange(0, BC), tl.arange(0, BF)
    total = tl.zeros((BX, BF), tl.float32)
    other: tl.constexpr = 1.0 if HOW == "padded with ones" else 0.0
    for s in range(S):
        step = s * s if HOW == "steps of different lengths" else s
        if HOW == "steps from memory":
            step = tl.load(out + s).to(tl.int32)
        xs = ox + (0 if HOW == "the same pixels" else step * (BX if HOW == "windows apart" else 1))
        seen = (xs[:, None] >= 0) & (xs[:, None] < W)
        if HOW == "padding by pixels":
            seen = (ox[:, None] >= 0) & (ox[:, None] < W)
        if HOW == "a mask of its own":
            seen = seen & ((xs[:, None] + c[None, :]) % 3 != 0)
        a = tl.load(x + xs[:, None] * xw + c[None, :], mask=seen, other=other)
        if HOW == "a pixel's function":
            a = a * s.to(tl.float16)
        b = tl.load(w + (s * BC + c[:, None]) * wc + f[None, :] * wf)
        if HOW == "volatile":
            b = tl.load(w + (s * BC + c[:, None]) * wc + f[None, :] * wf, volatile=True)
        if HOW == "weights with bounds by step":
            b = tl.load(w + (s * BC + c[:, None]) * wc + f[None, :] * wf, mask=f[None, :] + s < 5, other=0.0)
        total = tl.dot(a, b, total)
        if HOW == "a sum that is read":
            tl.store(out + ox[:, None] * BF + f[None, :], total)
        if HOW == "a sum that is changed":
            total = total * 0.5
    tl.store(out + ox[:, None] * BF + f[None, :], total)


CHANGES = [
    "padded with ones", "steps of different lengths", "steps from memory", "the same pixels", "windows apart",
    "padding by pixels", "a mask of its own", "a pixel's function", "volatile", "weights with bounds by step",
    "a sum that is read", "a sum that is changed",
]  # fmt: skip


@pytest.mark.parametrize("how", CHANGES)
def test_refused_where_a_condition_fails(how: str) -> None:
    text = form(changed, S=3, BX=16, BC=16, BF=16, HOW=how)
    assert NAMED not in text
    assert "linalg.matmul" in text


@pytest.mark.parametrize("given", [{"STRIDE": 2, "DIL": 3}, {"STRIDE": 3}, {"R": 1, "S": 1}])
def test_refused_where_windows_have_holes_or_nothing_in_common(given: dict[str, int]) -> None:
    assert NAMED not in form(of_rectangles, **{**TILES, **FILTER, "BY": 4, **given})


def test_recognised_where_no_condition_fails() -> None:
    assert NAMED in form(changed, S=3, BX=16, BC=16, BF=16, HOW="nothing")


def test_products_of_matrices_are_none() -> None:
    from linalg_kernels import product

    kinds = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32"}
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    source = front.run(ttir_text(product, kinds, K=64, BM=16, BN=16, BK=16), {})["structured"]
    text = str(linalg_stage("triton-shared").run(source, {}))
    assert NAMED not in text
    assert "linalg.matmul" in text


@triton.jit
def read_between(x, out, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    a = tl.load(x + at)
    total = tl.dot(a, a)
    tl.store(out + at, total)
    tl.store(out + B * B + at, tl.dot(a, a, total))


def test_a_sum_that_is_read_between_two_products_ends_their_chain() -> None:
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    source = front.run(ttir_text(read_between, {"x": "*fp16", "out": "*fp32"}, B=16), {})["structured"]
    text = str(linalg_stage("triton-shared").run(source, {}))
    assert NAMED not in text
    assert text.count("linalg.matmul") == 2


def test_what_must_not_wrap_around_is_promised_by_the_launch() -> None:
    """Of r * W, computed in 32 bits in the loop: a launch whose promises fail runs a kernel without the convolution."""
    from triton_porting_kit.abi.intervals import Op

    source = structured(by_loops, **TILES, **FILTER)
    metadata: dict[str, Any] = {}
    linalg_stage("triton-shared").run(source, metadata)
    given, before = metadata["promises"], linalg_promises(source)
    assert given[: len(before)] == before
    added = given[len(before) :: 3]
    assert added.count(int(Op.FITS)) >= 1
    without = re.sub(r"tpk\.promises = array<i64: [^>]*>", "tpk.other", source)
    assert NAMED not in str(linalg_stage("triton-shared").run(without, {}))


def linalg_promises(source: str) -> list[int]:
    """The promises of a structured kernel."""
    (found,) = re.findall(r"tpk\.promises = array<i64: ([^>]*)>", source)
    return [int(number) for number in found.split(", ")]
