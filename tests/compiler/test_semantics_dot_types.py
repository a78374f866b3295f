"""tl.dot of every operand type that Triton's front end lets pass, with every precision, from one element on."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from float_formats import FLOAT8, Array, Format, decode
from running import KINDS, device, empty, get, make_kernel, put
from test_semantics_dots import check, operand
from test_semantics_shapes import load_of

from triton_porting_kit.driver import DeviceArray

SHAPES = [(1, 1, 1), (2, 1, 4), (1, 64, 2), (4, 8, 1), (16, 16, 16), (32, 16, 64), (64, 128, 32)]
SHAPE_IDS = ["x".join(map(str, shape)) for shape in SHAPES]


def bytes_of(form: Format, shape: tuple[int, ...], seed: int) -> Array:
    """Patterns of numbers of either sign, denormal ones among them; none so large that sums of fp16 overflow."""
    random = np.random.default_rng(seed)
    patterns = random.integers(0, 1 << 8, shape, np.uint8)
    large = np.abs(decode(patterns, form)) <= 8.0
    return np.where(large, patterns, 1)


def put8(patterns: Array, form: Format) -> Any:
    array = DeviceArray.from_numpy(patterns, device())
    return triton.reinterpret(array, getattr(tl, form.language))


def product_source(a: tuple[int, ...], b: tuple[int, ...], out: tuple[int, ...], options: str) -> str:
    return (
        f"def product(A, B, O):\n    a = tl.load(A + {load_of(a)})\n    b = tl.load(B + {load_of(b)})\n"
        f"    tl.store(O + {load_of(out)}, tl.dot(a, b{options}))\n"
    )


def assert_near(actual: Array, a: Array, b: Array, accumulator: str) -> None:
    """Within the rounding of K sums in fp32, and one to the accumulator."""
    exact, scale = a @ b, np.abs(a) @ np.abs(b)
    allowed = (a.shape[-1] + 1) * 2.0**-24 * scale
    if accumulator == "fp16":
        allowed += np.abs(exact) * 2.0**-11 + 2.0**-25
    assert np.all(np.abs(actual.astype(np.float64) - exact) <= allowed)


@pytest.mark.parametrize("accumulator", ["fp32", "fp16"])
@pytest.mark.parametrize(
    "forms", list(itertools.product(FLOAT8, FLOAT8)), ids=lambda pair: f"{pair[0]}-{pair[1]}"
)
def test_8_bit_floats(forms: tuple[Format, Format], accumulator: str) -> None:
    for m, n, k in ((1, 2, 4), (16, 32, 64)):
        a, b = bytes_of(forms[0], (m, k), 1), bytes_of(forms[1], (k, n), 2)
        out = empty((m, n), accumulator)
        options = f", out_dtype={KINDS[accumulator].language}"
        kernel = make_kernel(product_source((m, k), (k, n), (m, n), options))
        kernel[(1,)](put8(a, forms[0]), put8(b, forms[1]), out)
        assert_near(get(out), decode(a, forms[0]), decode(b, forms[1]), accumulator)


@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_IDS)
@pytest.mark.parametrize("form", FLOAT8, ids=str)
def test_8_bit_floats_of_every_shape(form: Format, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = bytes_of(form, (2, m, k), 3), bytes_of(form, (2, k, n), 4)
    out = empty((2, m, n), "fp32")
    kernel = make_kernel(product_source((2, m, k), (2, k, n), (2, m, n), ", max_num_imprecise_acc=1"))
    kernel[(1,)](put8(a, form), put8(b, form), out)
    assert_near(get(out), decode(a, form), decode(b, form), "fp32")


@pytest.mark.parametrize("form", FLOAT8, ids=str)
def test_8_bit_infinity_and_nan(form: Format) -> None:
    patterns = np.arange(256, dtype=np.uint8).reshape(16, 16)
    one = np.eye(16, dtype=np.uint8) * np.flatnonzero(decode(np.arange(128, dtype=np.uint8), form) == 1.0)[0]
    out = empty((16, 16), "fp32")
    kernel = make_kernel(product_source((16, 16), (16, 16), (16, 16), ""))
    kernel[(1,)](put8(patterns, form), put8(one.astype(np.uint8), form), out)
    with np.errstate(invalid="ignore"):
        exact = decode(patterns, form) @ decode(one.astype(np.uint8), form)
    np.testing.assert_array_equal(get(out), exact)


PRECISIONS = ["ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("types", [("fp32", "fp32"), ("fp16", "fp32"), ("bf16", "fp32"), ("fp64", "fp64"), ("i8", "i32")],
                         ids=lambda types: types[0])  # fmt: skip
def test_every_precision_is_at_least_that_of_the_accumulator(types: tuple[str, str], precision: str) -> None:
    kind, accumulator = (KINDS[name] for name in types)
    a, b = operand((16, 64), kind, 5), operand((64, 32), kind, 6)
    out = empty((16, 32), accumulator)
    options = f', input_precision="{precision}"'
    kernel = make_kernel(product_source((16, 64), (64, 32), (16, 32), options))
    kernel[(1,)](put(a, kind), put(b, kind), out)
    check(get(out), a, b, 0, kind, accumulator)


@pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_IDS)
def test_extreme_bytes_wrap_nowhere(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = np.full((m, k), -128, np.int8), np.full((k, n), -128, np.int8)
    b[:, ::2] = 127
    out = empty((m, n), "i32")
    kernel = make_kernel(product_source((m, k), (k, n), (m, n), ""))
    kernel[(1,)](put(a, "i8"), put(b, "i8"), out)
    np.testing.assert_array_equal(get(out), a.astype(np.int64) @ b.astype(np.int64))


def test_sums_wrap_like_the_accumulator() -> None:
    source = (
        "def wrapped(A, B, C, O):\n"
        + "".join(f"    {x.lower()} = tl.load({x} + {load_of((16, 16))})\n" for x in "ABC")
        + f"    tl.store(O + {load_of((16, 16))}, tl.dot(a, b, acc=c, out_dtype=tl.int32))\n"
    )
    a = np.full((16, 16), 100, np.int8)
    c = np.full((16, 16), 2**31 - 5, np.int32)
    out = empty((16, 16), "i32")
    make_kernel(source)[(1,)](put(a, "i8"), put(a, "i8"), put(c, "i32"), out)
    np.testing.assert_array_equal(get(out), np.full((16, 16), 2**31 - 5 + 160000 - 2**32))


HALF_SUMS = """def half_sums(A, B, O, K):
    i, k = tl.arange(0, 16), tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float16)
    for start in range(0, K, 16):
        a = tl.load(A + i[:, None] * K + (start + k)[None, :])
        b = tl.load(B + (start + k)[:, None] * 16 + i[None, :])
        acc = tl.dot(a, b, acc=acc, out_dtype=tl.float16)
    tl.store(O + i[:, None] * 16 + i[None, :], acc)
"""


def test_accumulators_of_16_bits_are_rounded_after_each_product() -> None:
    """2048 + 1 is 2048 in fp16, however often; sums within one product are not rounded."""
    k = 64
    a, b = np.zeros((16, k), np.float16), np.ones((k, 16), np.float16)
    a[:, 0], a[:, 16], a[:, 32], a[:, 48:50] = 2048, 1, 1, 1
    out = empty((16, 16), "fp16")
    make_kernel(HALF_SUMS)[(1,)](put(a, "fp16"), put(b, "fp16"), out, k)
    np.testing.assert_array_equal(get(out), np.full((16, 16), 2050, np.float16))


REFUSED = [
    ("uint8", "uint8"),
    ("int8", "uint8"),
    ("int16", "int16"),
    ("int32", "int32"),
    ("float16", "bfloat16"),
    ("float32", "float16"),
    ("float8e5", "float16"),
    ("int8", "float8e5"),
]


@pytest.mark.parametrize("types", REFUSED, ids=lambda types: "-".join(types))
def test_front_end_refuses_other_operands(types: tuple[str, str]) -> None:
    arrays = [
        triton.reinterpret(DeviceArray.zeros(256, "int64", device()), getattr(tl, name)) for name in types
    ]
    kernel = make_kernel(product_source((16, 16), (16, 16), (16, 16), ""))
    with pytest.raises(triton.CompilationError):
        kernel[(1,)](*arrays, empty((16, 16), "fp32"))
