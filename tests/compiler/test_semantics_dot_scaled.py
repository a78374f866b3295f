"""tl.dot_scaled: every pair of microscaling formats, decoded by the tables of the formats' specification."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from float_formats import FORMATS, Array, decode, encode
from running import device, make_kernel
from test_semantics_shapes import load_of

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.toolchain import compat

#: The numbers of E2M1, by pattern (OCP Microscaling Formats specification, section 5.3.3).
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
ELEMENTS = {"e4m3": "fp8e4nv", "e5m2": "fp8e5", "bf16": "bf16", "fp16": "fp16"}
FORMAT_NAMES = ["e2m1", *ELEMENTS]
PAIRS = list(itertools.product(FORMAT_NAMES, FORMAT_NAMES))
RELEASE = compat.release()


@dataclass
class Operand:
    """A matrix (or several) in memory, and its numbers, scaled."""

    stored: Any
    numbers: Array
    scales: Any = None


def scale_numbers(scales: Array) -> Array:
    """E8M0: powers of two, and NaN."""
    return np.where(scales == 255, np.nan, np.exp2(scales.astype(np.float64) - 127))


def operand(
    form: str,
    shape: tuple[int, ...],
    seed: int,
    *,
    along: int,
    packed: int,
    scales: Array | None = None,
    as_bytes: bool = False,
) -> Operand:
    """Random elements of a format. K is dimension `along`; `packed` is the dimension that shares bytes in e2m1."""
    random = np.random.default_rng(seed)
    if form == "e2m1":
        patterns = random.integers(0, 16, shape, np.uint8)
        numbers = E2M1[patterns]
        halves = np.moveaxis(patterns, packed, -1)
        stored: Any = np.moveaxis(halves[..., ::2] | halves[..., 1::2] << 4, -1, packed)
        array: Any = DeviceArray.from_numpy(np.ascontiguousarray(stored), device())
    else:
        kind = FORMATS[ELEMENTS[form]]
        if kind.bits == 8:
            patterns = random.integers(0, 256, shape, np.uint8)
            patterns = np.where(np.isfinite(decode(patterns, kind)), patterns, 0x29).astype(np.uint8)
        else:
            patterns = encode(random.standard_normal(shape), kind)
        numbers = decode(patterns, kind)
        array = DeviceArray.from_numpy(patterns, device())
        if not as_bytes:
            array = triton.reinterpret(array, getattr(tl, kind.language))
    if scales is None:
        return Operand(array, numbers)
    group = shape[along] // scales.shape[-1]
    wide = np.repeat(scale_numbers(scales), group, -1)
    with np.errstate(invalid="ignore"):
        numbers = numbers * (wide if along == len(shape) - 1 else np.swapaxes(wide, -1, -2))
    return Operand(array, numbers, DeviceArray.from_numpy(scales, device()))


def random_scales(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).integers(100, 150, shape, np.uint8)


def halved(shape: tuple[int, ...], form: str, dimension: int) -> tuple[int, ...]:
    """The shape of what holds the elements."""
    if form != "e2m1":
        return shape
    return (*shape[:dimension], shape[dimension] // 2, *shape[dimension + 1 :])


def run(
    formats: tuple[str, str],
    shape: tuple[int, ...],
    *,
    group: int = 32,
    scaled: tuple[bool, bool] = (True, True),
    k_pack: tuple[bool, bool] = (True, True),
    fast_math: bool = False,
    scales: tuple[Array, Array] | None = None,
    accumulate: bool = False,
    as_bytes: bool = False,
) -> tuple[Array, Operand, Operand, Array]:
    """The product of random operands: (result, A, B, what it was added to); `shape` is (batch...), M, N, K."""
    *batch, m, n, k = shape
    rank = len(batch) + 2
    rows, columns = rank - 2, rank - 1
    given = scales or (random_scales((*batch, m, k // group), 3), random_scales((*batch, n, k // group), 4))
    packed = (columns if k_pack[0] else rows, rows if k_pack[1] else columns)
    shapes: list[tuple[int, ...]] = [(*batch, m, k), (*batch, k, n)]
    a, b = (
        operand(
            form, shapes[i], 1 + i, along=columns - i, packed=packed[i],
            scales=given[i] if scaled[i] else None, as_bytes=as_bytes,
        )
        for i, form in enumerate(formats)
    )  # fmt: skip
    c = np.random.default_rng(5).standard_normal((*batch, m, n)).astype(np.float32) * accumulate
    stored = [halved(shapes[i], formats[i], packed[i]) for i in range(2)]
    source = (
        "def scaled(A, SA, B, SB, C, O):\n"
        f"    a = tl.load(A + {load_of(stored[0])})\n    b = tl.load(B + {load_of(stored[1])})\n"
        f"    sa = {f'tl.load(SA + {load_of(given[0].shape)})' if scaled[0] else None}\n"
        f"    sb = {f'tl.load(SB + {load_of(given[1].shape)})' if scaled[1] else None}\n"
        f"    acc = {f'tl.load(C + {load_of(c.shape)})' if accumulate else None}\n"
        f'    z = tl.dot_scaled(a, sa, "{formats[0]}", b, sb, "{formats[1]}", acc=acc, fast_math={fast_math}, '
        f"lhs_k_pack={k_pack[0]}, rhs_k_pack={k_pack[1]})\n    tl.store(O + {load_of(c.shape)}, z)\n"
    )
    out = DeviceArray.empty(c.shape, "float32", device())
    added = DeviceArray.from_numpy(c, device())
    nothing = added  # stands where the kernel reads no scales
    make_kernel(source)[(1,)](a.stored, a.scales or nothing, b.stored, b.scales or nothing, added, out)
    return out.numpy(), a, b, c


def assert_near(actual: Array, a: Operand, b: Operand, c: Array) -> None:
    """Within the rounding of K + 1 sums in fp32: elements times scales are exact."""
    exact, scale = a.numbers @ b.numbers + c, np.abs(a.numbers) @ np.abs(b.numbers) + np.abs(c)
    assert np.all(np.abs(actual - exact) <= (a.numbers.shape[-1] + 2) * 2.0**-24 * scale)


@pytest.mark.parametrize(
    "scaled", [(True, True), (True, False), (False, True)], ids=["both", "left", "right"]
)
@pytest.mark.parametrize("formats", PAIRS, ids="-".join)
def test_every_pair_of_formats(formats: tuple[str, str], scaled: tuple[bool, bool]) -> None:
    assert_near(*run(formats, (16, 32, 64), scaled=scaled))


PACKING = [
    (formats, (left, right))
    for formats in PAIRS
    for left in (True, False)
    for right in (True, False)
    if (left or formats[0] == "e2m1") and (right or formats[1] == "e2m1") and not (left and right)
]


@pytest.mark.parametrize(("formats", "k_pack"), PACKING, ids=lambda v: "-".join(map(str, v)))
def test_packing_along_the_other_dimension(formats: tuple[str, str], k_pack: tuple[bool, bool]) -> None:
    assert_near(*run(formats, (32, 16, 64), k_pack=k_pack, accumulate=True))


SHAPES = [(1, 1, 32), (2, 2, 32), (1, 64, 32), (16, 1, 128), (64, 4, 32), (128, 32, 64), (32, 128, 256)]


@pytest.mark.parametrize(
    "formats", [("e2m1", "e2m1"), ("e4m3", "e2m1"), ("e5m2", "e4m3"), ("e2m1", "bf16")], ids="-".join
)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_shapes(shape: tuple[int, ...], formats: tuple[str, str]) -> None:
    assert_near(*run(formats, shape, accumulate=True))


#: Triton 3.6 has no scales for batches, and releases before 3.8 no groups but those of 32.
BATCHED = [("e2m1", "e4m3"), ("fp16", "e2m1"), ("e5m2", "e5m2")] if RELEASE >= (3, 7) else []
SMALL_GROUPS = [("e2m1", "e2m1"), ("e2m1", "e4m3")] if RELEASE >= (3, 8) else []


@pytest.mark.parametrize("formats", BATCHED, ids="-".join)
def test_batches(formats: tuple[str, str]) -> None:
    assert_near(*run(formats, (4, 16, 8, 64), accumulate=True))


@pytest.mark.parametrize("formats", SMALL_GROUPS, ids="-".join)
def test_groups_of_16(formats: tuple[str, str]) -> None:
    assert_near(*run(formats, (16, 16, 64), group=16))


@pytest.mark.parametrize("formats", [pair for pair in PAIRS if "e2m1" not in pair][::2], ids="-".join)
def test_elements_given_as_integers(formats: tuple[str, str]) -> None:
    assert_near(*run(formats, (16, 16, 32), as_bytes=True))


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("form", FORMAT_NAMES)
def test_every_scale(form: str, fast_math: bool) -> None:
    """All 256 of them, denormal results and NaN included, times one element each."""
    k = 32
    scales = np.arange(256, dtype=np.uint8).reshape(256, 1)
    ones = np.full((16, 1), 127, np.uint8)
    actual, a, _, _ = run((form, "bf16"), (256, 16, k), scales=(scales, ones), fast_math=fast_math)
    single = one_column(form, scales, fast_math)
    # Where an element of the row overflows fp32, infinity times 0 is NaN.
    fits = ~(np.abs(a.numbers).max(1) >= 2.0**128)
    assert fits.sum() > 235
    np.testing.assert_array_equal(single[fits], a.numbers[fits, 0].astype(np.float32))
    assert np.all(np.isnan(actual[255]))
    assert not np.any(np.isnan(actual[:240]))


def one_column(form: str, scales: Array, fast_math: bool) -> Array:
    """The first column of A, by a B that is 1 there and 0 elsewhere."""
    a = operand(form, (256, 32), 1, along=1, packed=1, scales=scales)
    first = np.zeros((32, 1))
    first[0] = 1
    b = triton.reinterpret(DeviceArray.from_numpy(encode(first, FORMATS["bf16"]), device()), tl.bfloat16)
    source = (
        "def column(A, SA, B, O):\n"
        f"    a = tl.load(A + {load_of(halved((256, 32), form, 1))})\n    b = tl.load(B + {load_of((32, 1))})\n"
        f"    sa = tl.load(SA + {load_of((256, 1))})\n"
        f'    z = tl.dot_scaled(a, sa, "{form}", b, None, "bf16", fast_math={fast_math})\n'
        f"    tl.store(O + {load_of((256, 1))}, z)\n"
    )
    out = DeviceArray.empty((256, 1), "float32", device())
    make_kernel(source)[(1,)](a.stored, a.scales, b, out)
    return out.numpy()[:, 0]


def test_infinities_and_nan_of_elements() -> None:
    patterns = np.arange(128, dtype=np.uint8).reshape(4, 32)
    numbers = decode(patterns, FORMATS["fp8e5"])
    one = encode(np.ones((32, 4)), FORMATS["bf16"])
    source = (
        f"def elements(A, SA, B, O):\n    a = tl.load(A + {load_of((4, 32))})\n    b = tl.load(B + {load_of((32, 4))})\n"
        f'    sa = tl.load(SA + {load_of((4, 1))})\n    z = tl.dot_scaled(a, sa, "e5m2", b, None, "bf16")\n'
        f"    tl.store(O + {load_of((4, 4))}, z)\n"
    )
    out = DeviceArray.empty((4, 4), "float32", device())
    scales = DeviceArray.from_numpy(np.full((4, 1), 127, np.uint8), device())
    a = DeviceArray.from_numpy(patterns, device())
    b = triton.reinterpret(DeviceArray.from_numpy(one, device()), tl.bfloat16)
    make_kernel(source)[(1,)](a, scales, b, out)
    np.testing.assert_array_equal(
        out.numpy(), np.repeat(numbers.sum(1, keepdims=True), 4, 1).astype(np.float32)
    )


LOOP = """def loop(A, SA, B, SB, O, K, G, BK: tl.constexpr):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    j, k, g = tl.arange(0, 32), tl.arange(0, BK), tl.arange(0, BK // 32)
    half = tl.arange(0, BK // 2)
    acc = tl.zeros((16, 32), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        at = step * BK
        a = tl.load(A + i[:, None] * (K // 2) + (at // 2 + half)[None, :], mask=(at // 2 + half)[None, :] < K // 2, other=0)
        sa = tl.load(SA + i[:, None] * G + (at // 32 + g)[None, :], mask=(at // 32 + g)[None, :] < G, other=127)
        b = tl.load(B + (at + k)[:, None] * 32 + j[None, :], mask=(at + k)[:, None] < K, other=0.0)
        sb = tl.load(SB + j[:, None] * G + (at // 32 + g)[None, :], mask=(at // 32 + g)[None, :] < G, other=127)
        acc = tl.dot_scaled(a, sa, "e2m1", b, sb, "e4m3", acc)
    tl.store(O + i[:, None] * 32 + j[None, :], acc)
"""


def test_product_in_a_loop() -> None:
    m, n, k = 48, 32, 320
    a = operand("e2m1", (m, k), 1, along=1, packed=1, scales=random_scales((m, k // 32), 2))
    b = operand("e4m3", (k, n), 3, along=0, packed=0, scales=random_scales((n, k // 32), 4))
    out = DeviceArray.empty((m, n), "float32", device())
    make_kernel(LOOP)[(m // 16,)](a.stored, a.scales, b.stored, b.scales, out, k, k // 32, BK=128)
    assert_near(out.numpy(), a, b, np.zeros((m, n)))


def test_scales_of_8_bit_floats() -> None:
    """Groups of 16 elements of 4 bits with scales in E4M3, as NVIDIA's format has them."""
    m, n, k = 16, 32, 64
    random = np.random.default_rng(7)
    kind = FORMATS["fp8e4nv"]
    patterns = [random.integers(0x20, 0x58, (size, k // 16), np.uint8) for size in (m, n)]
    a = operand("e2m1", (m, k), 1, along=1, packed=1)
    b = operand("e2m1", (k, n), 2, along=0, packed=0)
    scales = [triton.reinterpret(DeviceArray.from_numpy(p, device()), tl.float8e4nv) for p in patterns]
    wide = [np.repeat(decode(p, kind), 16, 1) for p in patterns]
    a.numbers, b.numbers = a.numbers * wide[0], b.numbers * wide[1].T
    source = (
        f"def small_groups(A, SA, B, SB, O):\n    a = tl.load(A + {load_of((m, k // 2))})\n"
        f"    b = tl.load(B + {load_of((k // 2, n))})\n    sa = tl.load(SA + {load_of((m, k // 16))})\n"
        f"    sb = tl.load(SB + {load_of((n, k // 16))})\n"
        f'    tl.store(O + {load_of((m, n))}, tl.dot_scaled(a, sa, "e2m1", b, sb, "e2m1"))\n'
    )
    out = DeviceArray.empty((m, n), "float32", device())
    make_kernel(source)[(1,)](a.stored, scales[0], b.stored, scales[1], out)
    assert_near(out.numpy(), a, b, np.zeros((m, n)))
