"""torch's CPU tensors as arguments: every element type, views, and results that are there at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_kernels import convert_elements, copy_strided, double_elements
from triton.runtime.jit import reinterpret

torch: Any = pytest.importorskip("torch")
tl: Any = pytest.importorskip("triton.language")

DTYPES = [
    "float64", "float32", "float16", "bfloat16", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_element_types_and_offsets(name: str, offset: int) -> None:
    dtype = getattr(torch, name)
    whole = (torch.arange(-20, 80) % 7).to(dtype)
    x = whole[offset : offset + 70]
    out = torch.full((100,), 1).to(dtype)
    double_elements[(5,)](x, out[offset:], 70, BLOCK=16)
    expected = x if name == "bool" else x + x if "uint" not in name else (x.long() * 2).to(dtype)
    assert torch.equal(out[offset : offset + 70], expected)
    assert (out[offset + 70 :] == 1).all()
    assert (out[:offset] == 1).all()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_8_bit_floats(name: str) -> None:
    """Values that the type has go to fp32 and back."""
    x = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))
    wide, back = torch.empty(256), torch.empty_like(x)
    convert_elements[(1,)](x, wide, 256, BLOCK=256)
    convert_elements[(1,)](wide, back, 256, BLOCK=256)
    assert torch.equal(wide.nan_to_num(-1.0), x.float().nan_to_num(-1.0))
    finite = wide.isfinite()
    assert torch.equal(back.view(torch.uint8)[finite], x.view(torch.uint8)[finite])
    assert back.float()[wide.isnan()].isnan().all()


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t,
        lambda t: t.T,
        lambda t: t[:, 3:10],
        lambda t: t[::2, 1::3],
        lambda t: t[1:2].expand(5, -1),
        lambda t: t[2][:, None],
    ],
)
def test_strided_views(view: Any) -> None:
    x = view(torch.arange(20 * 30, dtype=torch.float32).reshape(20, 30))
    out = torch.zeros(x.shape)
    copy_strided[(x.shape[0],)](x, out, *x.shape, *x.stride(), BLOCK=32)
    assert torch.equal(out, x)


def test_results_are_there_when_the_launch_returns() -> None:
    x = torch.arange(100_000, dtype=torch.float32)
    for _ in range(20):
        out = torch.zeros_like(x)
        double_elements[(98,)](x, out, len(x), BLOCK=1024)
        assert out.sum().item() == (2 * x).sum().item()


def test_memory_of_numpy_wrapped_by_torch() -> None:
    x = np.arange(32, dtype=np.float32)
    out = torch.zeros(32)
    double_elements[(2,)](torch.from_numpy(x), out, 32, BLOCK=16)
    np.testing.assert_array_equal(out.numpy(), 2 * x)


def test_reinterpreted_tensors() -> None:
    x = torch.arange(16, dtype=torch.int32)
    out = torch.zeros(16)
    double_elements[(1,)](reinterpret(x, tl.float32), reinterpret(out, tl.float32), 16, BLOCK=16)
    assert torch.equal(out, x.view(torch.float32) * 2)


def test_empty_tensors() -> None:
    x = torch.zeros(0)
    double_elements[(1,)](x, x, 0, BLOCK=16)
    double_elements[(0,)](x, x, 0, BLOCK=16)


def test_a_tensor_that_needs_gradients() -> None:
    x = torch.ones(16, requires_grad=True)
    out = torch.zeros(16)
    double_elements[(1,)](x, out, 16, BLOCK=16)
    assert (out == 2).all()
