"""Element types: their names in Triton, and the formats that numpy lacks."""

from __future__ import annotations

import numpy as np
import pytest

from triton_porting_kit.driver import dtypes
from triton_porting_kit.driver.dtypes import as_dtype, decode, encode
from triton_porting_kit.errors import DTypeError

MINIFLOATS = [dtype for dtype in dtypes.ALL.values() if dtype.minifloat]
IN_TORCH = [dtype for dtype in MINIFLOATS if dtype is not dtypes.ALL["float8e4b15"]]


class _Pointer:
    def __init__(self, dtype: object) -> None:
        self.dtype = dtype

    def data_ptr(self) -> int:
        return 4096


def test_triton_knows_every_name() -> None:
    from triton.runtime.jit import mangle_type

    seen = {name: mangle_type(_Pointer(dtype), specialize=True) for name, dtype in dtypes.ALL.items()}
    assert seen["bool"] == "*u1"
    assert seen["float32"] == "*fp32"
    assert seen["bfloat16"] == "*bf16"
    assert seen["uint64"] == "*u64"
    assert seen["float8_e4m3fn"] == "*fp8e4nv"
    assert len(set(seen.values())) == len(dtypes.ALL)
    assert seen == {name: mangle_type(_Pointer(dtype)) for name, dtype in dtypes.ALL.items()}


@pytest.mark.parametrize("name", list(dtypes.ALL))
def test_one_object_of_each(name: str) -> None:
    dtype = dtypes.ALL[name]
    assert str(dtype) == repr(dtype) == name
    assert as_dtype(name) is as_dtype(dtype) is as_dtype(f"torch.{name}") is dtype


def test_as_dtype_takes_what_others_call_it() -> None:
    torch = pytest.importorskip("torch")
    assert as_dtype(np.float32) is as_dtype(np.dtype("f4")) is as_dtype(torch.float32) is dtypes.float32
    assert as_dtype(float) is dtypes.ALL["float64"]
    assert as_dtype(torch.bfloat16) is dtypes.bfloat16
    assert as_dtype(torch.float8_e5m2) is dtypes.ALL["float8_e5m2"]
    for bad in ("complex64", np.complex128, "nonsense", None.__class__, object()):
        with pytest.raises(DTypeError, match="no element type"):
            as_dtype(bad)
    with pytest.raises(TypeError):
        as_dtype("S4")


@pytest.mark.parametrize("dtype", IN_TORCH, ids=str)
def test_patterns_and_values_match_torch(dtype: dtypes.DType) -> None:
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype.name)
    patterns = np.arange(1 << 8 * dtype.itemsize).astype(dtype.numpy)
    expected = torch.from_numpy(patterns).view(kind).to(torch.float32).numpy()
    np.testing.assert_array_equal(decode(patterns, dtype), expected)
    values = decode(patterns, dtype)
    known = ~np.isnan(values)
    np.testing.assert_array_equal(encode(values, dtype)[known], patterns[known])
    assert np.isnan(decode(encode(np.float32([np.nan, -np.nan]), dtype), dtype)).all()

    random = np.random.default_rng(0)
    scales = 2.0 ** random.integers(-20, 16, 20_000)
    samples = (random.standard_normal(20_000) * scales).astype(np.float32)
    finite = np.sort(values[np.isfinite(values)].astype(np.float64))
    halfway = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)  # ties
    samples = np.concatenate([samples, halfway, np.nextafter(halfway, np.float32(9e9)), -halfway])
    largest = float(finite[-1])
    samples = samples[np.abs(samples) <= largest]
    expected = torch.from_numpy(samples).to(kind).view(getattr(torch, str(dtype.numpy))).numpy()
    np.testing.assert_array_equal(encode(samples, dtype), expected)


def test_the_format_of_triton_itself() -> None:
    """float16 of fewer bits: without its first exponent bit, and with 3 bits of fraction."""
    patterns = np.arange(256, dtype=np.uint16)
    halves = ((patterns & 0x7F) << 7 | (patterns & 0x80) << 8).view(np.float16)
    dtype = dtypes.ALL["float8e4b15"]
    np.testing.assert_array_equal(decode(patterns.astype(np.uint8), dtype), halves.astype(np.float32))
    np.testing.assert_array_equal(encode(halves.astype(np.float32), dtype), patterns)
    assert encode(np.float32([9.0, -np.inf]), dtype).tolist() == [0x7F, 0xFF]
    assert dtype.is_floating_point


@pytest.mark.parametrize("dtype", IN_TORCH, ids=str)
def test_overflow(dtype: dtypes.DType) -> None:
    assert dtype.minifloat is not None
    back = decode(
        encode(np.float32([np.inf, -np.inf, 3e38 if dtype.itemsize == 1 else 3.4e38]), dtype), dtype
    )
    if dtype.minifloat.infinity is not None:
        assert back.tolist() == [np.inf, -np.inf, np.inf]
    else:
        assert np.isnan(back).all()


def test_only_float32_is_encoded() -> None:
    with pytest.raises(DTypeError):
        encode(np.zeros(3), dtypes.bfloat16)
    with pytest.raises(DTypeError):
        encode(np.zeros(3, np.float32), dtypes.ALL["float16"])
    with pytest.raises(DTypeError):
        decode(np.zeros(3, np.uint8), dtypes.bfloat16)
