"""The references stand on known answers and on definitions, independent of any kernel."""

from __future__ import annotations

import numpy as np
import pytest

from triton_porting_kit.kernels import references


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, (0xFFFFFFFF,) * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
    ids=["zeros", "ones", "pi"],
)
def test_philox_gives_the_published_answers(
    counter: list[int], key: tuple[int, int], expected: list[int]
) -> None:
    words = references.philox_4x32(np.array(counter, np.uint32)[:, None], key)
    assert words[:, 0].tolist() == expected


def test_uniform_numbers_are_uniform() -> None:
    numbers = references.uniform(5, 100_000)
    assert 0 <= numbers.min() < 1e-3
    assert 0.999 < numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 5e-3


def test_dropout_keeps_the_expected_value() -> None:
    out = references.dropout(np.ones(100_000), 0.3, 1)
    assert set(np.unique(out.round(5))) == {0.0, 1.42857}
    assert abs(out.mean() - 1) < 0.01


def test_layer_norm_gradient_is_the_difference_quotient() -> None:
    generator = np.random.default_rng(1)
    dy, x = generator.standard_normal((2, 3, 5))
    weight, bias = generator.standard_normal((2, 5))

    def loss(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> float:
        return float((references.layer_norm(x, weight, bias)[0] * dy).sum())

    inputs = [x, weight, bias]
    for which, gradient in enumerate(references.layer_norm_backward(dy, x, weight)):
        quotient = np.zeros_like(gradient)
        for index in np.ndindex(gradient.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [array.copy() for array in inputs]
                moved[which][index] += step
                ends.append(loss(*moved))
            quotient[index] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(gradient, quotient, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("box", "other", "loss"),
    [
        ([0, 0, 2, 2], [0, 0, 2, 2], 0.0),
        ([0, 0, 2, 2], [1, 1, 3, 3], 1 - 1 / 7 + 2 / 9),
        ([0, 0, 1, 1], [2, 0, 3, 1], 1 + 1 / 3),
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0),
        ([1, 1, 1, 1], [0, 0, 2, 2], 1.0),
    ],
    ids=["equal", "overlapping", "disjoint", "both_without_area", "one_without_area"],
)
def test_giou_loss_by_hand(box: list[float], other: list[float], loss: float) -> None:
    boxes = (np.array([[corners]], float) for corners in (box, other))
    np.testing.assert_allclose(references.giou_loss(*boxes, np.array([[True]])), [loss])


def test_giou_loss_without_valid_boxes_is_zero() -> None:
    nowhere = np.full((1, 3, 4), np.nan)
    assert references.giou_loss(nowhere, nowhere, np.zeros((1, 3), bool)).tolist() == [0.0]


def test_gelu_by_hand() -> None:
    values = references.gelu_residual(np.array([0.0, 1.0, -40.0]), np.array([3.0, 0.0, 0.0]), 1.0, 0.0)
    np.testing.assert_allclose(values, [3.0, 0.8413447460685429, 0.0], atol=1e-15)


def test_attention_of_equal_keys_is_the_mean() -> None:
    v = np.arange(8.0).reshape(1, 4, 2)
    output, lse = references.attention(np.ones((1, 4, 2)), np.zeros((1, 4, 2)), v)
    np.testing.assert_allclose(output, np.broadcast_to([3.0, 4.0], (1, 4, 2)))
    np.testing.assert_allclose(lse, np.log(4.0))


def test_attention_gradient_is_the_difference_quotient() -> None:
    inputs = list(np.random.default_rng(2).standard_normal((3, 1, 4, 2)))
    dout = np.random.default_rng(3).standard_normal((1, 4, 2))
    for which, gradient in enumerate(references.attention_backward(*inputs, dout)):
        for index in np.ndindex(gradient.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [array.copy() for array in inputs]
                moved[which][index] += step
                ends.append(float((references.attention(*moved)[0] * dout).sum()))
            np.testing.assert_allclose(gradient[index], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-8)
