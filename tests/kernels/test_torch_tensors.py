"""All kernels end to end on torch CPU tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from triton_porting_kit.kernels import cases, references
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.layer_norm import layer_norm, layer_norm_backward
from triton_porting_kit.kernels.matmul import DEFAULT_TILES, matmul
from triton_porting_kit.kernels.places import TorchPlace
from triton_porting_kit.kernels.softmax import softmax

torch = pytest.importorskip("torch")


def test_result_matches_reference(case: Case, check: Any) -> None:
    check(case, TorchPlace())


@pytest.mark.parametrize("shift", [0, 1], ids=["aligned", "unaligned"])
def test_nothing_outside_the_arrays_is_touched(guarded_case: Case, check_guarded: Any, shift: int) -> None:
    check_guarded(guarded_case, TorchPlace(), shift)


@pytest.mark.parametrize("layout", ["a_transposed", "b_transposed", "both_transposed", "columns_skipped"])
def test_matmul_takes_any_strides(layout: str) -> None:
    case = cases.matmul_case(50, 70, 60, "float32")
    operands = case.operands()
    a, b = (torch.tensor(operand.values, dtype=torch.float32) for operand in operands)
    if layout in ("a_transposed", "both_transposed"):
        a = a.T.contiguous().T
    if layout in ("b_transposed", "both_transposed"):
        b = b.T.contiguous().T
    if layout == "columns_skipped":
        a = a.repeat_interleave(2, dim=1)[:, ::2]
    (deviation,) = case.compare([matmul(a, b, tiles=DEFAULT_TILES).double().numpy()], operands)
    assert deviation.ok, deviation


def test_softmax_takes_rows_with_gaps() -> None:
    x = torch.randn(9, 40)[:, :17]
    expected = references.softmax(x.double().numpy())
    np.testing.assert_allclose(softmax(x).numpy(), expected, rtol=4e-6)


@pytest.mark.parametrize("scale", [1e4, 1e38], ids=["exp_overflows", "near_the_largest_float"])
def test_softmax_is_stable_for_large_inputs(scale: float) -> None:
    x = torch.tensor([[1.0, 0.0, -1.0], [-1.0, -1.0, -1.0]]) * scale
    np.testing.assert_allclose(softmax(x).numpy(), [[1, 0, 0], [1 / 3] * 3], rtol=1e-6)


def test_layer_norm_agrees_with_autograd() -> None:
    generator = torch.Generator().manual_seed(3)
    x, dy = (torch.randn(33, 129, generator=generator) for _ in range(2))
    weight, bias = (torch.randn(129, generator=generator) for _ in range(2))
    leaves = [tensor.double().requires_grad_() for tensor in (x, weight, bias)]
    torch.nn.functional.layer_norm(leaves[0], (129,), leaves[1], leaves[2]).backward(dy.double())
    _, mean, rstd = layer_norm(x, weight, bias)
    for got, leaf in zip(layer_norm_backward(dy, x, weight, mean, rstd), leaves, strict=True):
        np.testing.assert_allclose(got.numpy(), leaf.grad.numpy(), rtol=1e-5, atol=2e-5)
