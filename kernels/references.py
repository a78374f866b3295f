"""Reference implementations in float64 NumPy, written from the definitions and not from the kernels.

All functions take and return float64 arrays (masks are bool). Inputs are the values that the kernel
receives, already rounded to its type.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]


def vector_add(x: Float64, y: Float64) -> Float64:
    """x + y."""
    return x + y


def softmax(x: Float64) -> Float64:
    """Softmax of each row."""
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    result: Float64 = weights / weights.sum(axis=-1, keepdims=True)
    return result


def matmul(a: Float64, b: Float64, leaky_relu: bool = False) -> Float64:
    """a @ b; with `leaky_relu`, negative results are divided by 100."""
    product: Float64 = a @ b
    return np.where(product < 0, product / 100, product) if leaky_relu else product


def giou_loss(pred: Float64, target: Float64, valid: NDArray[np.bool_]) -> Float64:
    """Mean of 1 - GIoU over the valid boxes of each sample; 0 if there are none."""
    losses = np.zeros(len(pred))
    for sample, chosen in enumerate(valid):
        if chosen.any():
            losses[sample] = _pair_losses(pred[sample][chosen], target[sample][chosen]).mean()
    return losses


def _pair_losses(boxes: Float64, others: Float64) -> Float64:
    def area(corners: Float64) -> Float64:
        result: Float64 = np.prod(np.clip(corners[:, 2:] - corners[:, :2], 0, None), axis=1)
        return result

    def ratio(part: Float64, whole: Float64) -> Float64:
        return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)

    both = np.stack([boxes, others])
    overlap = area(np.concatenate([both[:, :, :2].max(axis=0), both[:, :, 2:].min(axis=0)], axis=1))
    hull = area(np.concatenate([both[:, :, :2].min(axis=0), both[:, :, 2:].max(axis=0)], axis=1))
    union = area(boxes) + area(others) - overlap
    return 1 - ratio(overlap, union) + ratio(hull - union, hull)


def row_statistics(x: Float64, eps: float) -> tuple[Float64, Float64]:
    """Mean and 1 / sqrt(variance + eps) of each row."""
    return x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + eps)


def layer_norm(
    x: Float64, weight: Float64, bias: Float64, eps: float = 1e-5
) -> tuple[Float64, Float64, Float64]:
    """Normalised rows, and the mean and the reciprocal deviation of each."""
    mean, rstd = row_statistics(x, eps)
    return (x - mean[:, None]) * rstd[:, None] * weight + bias, mean, rstd


def layer_norm_backward(
    dy: Float64, x: Float64, weight: Float64, eps: float = 1e-5
) -> tuple[Float64, Float64, Float64]:
    """dx, dweight and dbias, by the chain rule through the mean and the variance of each row."""
    n_cols = x.shape[1]
    mean, rstd = (column[:, None] for column in row_statistics(x, eps))
    centred = x - mean
    d_normalised = dy * weight
    d_variance = (d_normalised * centred).sum(axis=1, keepdims=True) * -0.5 * rstd**3
    d_mean = -(d_normalised * rstd).sum(axis=1, keepdims=True)
    dx = d_normalised * rstd + d_variance * 2 * centred / n_cols + d_mean / n_cols
    return dx, (dy * centred * rstd).sum(axis=0), dy.sum(axis=0)


def normal_distribution(x: Float64) -> Float64:
    """P(N <= x) for a standard normal N."""
    # erfc instead of erf avoids cancellation for small probabilities.
    values = np.fromiter((math.erfc(value) for value in (-x.ravel() * 2**-0.5).tolist()), np.float64, x.size)
    return np.asarray(values.reshape(x.shape) / 2)


def gelu_residual(x: Float64, residual: Float64, a: float, b: float) -> Float64:
    """gelu(x * a + b) + residual."""
    t = x * a + b
    return t * normal_distribution(t) + residual


def cumulative_sum(x: Float64) -> Float64:
    """The running sum along each row."""
    return np.asarray(np.cumsum(x, axis=1))


def sort_rows(x: Float64) -> Float64:
    """Each row in ascending order."""
    return np.sort(x, axis=1)


def attention_weights(q: Float64, k: Float64) -> tuple[Float64, Float64]:
    """Softmax of q kᵀ / √dim, and the logarithm of each row's sum of exponentials."""
    s = q @ k.swapaxes(1, 2) * q.shape[2] ** -0.5
    top = s.max(axis=2, keepdims=True)
    lse = top + np.log(np.exp(s - top).sum(axis=2, keepdims=True))
    return np.exp(s - lse), lse[..., 0]


def attention(q: Float64, k: Float64, v: Float64) -> tuple[Float64, Float64]:
    """The output of attention, and the logarithms of sums of weights."""
    p, lse = attention_weights(q, k)
    return p @ v, lse


def attention_backward(q: Float64, k: Float64, v: Float64, dout: Float64) -> tuple[Float64, Float64, Float64]:
    """dq, dk and dv, by the chain rule through the softmax of each row."""
    p, _ = attention_weights(q, k)
    dp = dout @ v.swapaxes(1, 2)
    ds = p * (dp - (p * dp).sum(axis=2, keepdims=True)) * q.shape[2] ** -0.5
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dout


def philox_4x32(counter: NDArray[np.uint32], key: tuple[int, int], rounds: int = 10) -> NDArray[np.uint32]:
    """Philox-4x32: `counter` of shape (4, …) and two 32-bit key words to four random words of that shape."""
    multipliers = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
    weyl = 0x9E3779B9, 0xBB67AE85
    state = [word.astype(np.uint64) for word in counter]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for step in range(rounds):
        k0, k1 = (np.uint64((word + step * weyl[i]) & 0xFFFFFFFF) for i, word in enumerate(key))
        first, second = multipliers[0] * state[0], multipliers[1] * state[2]
        state = [
            (second >> shift) ^ state[1] ^ k0,
            second & low,
            (first >> shift) ^ state[3] ^ k1,
            first & low,
        ]
    return np.stack(state).astype(np.uint32)


def uniform(seed: int, count: int) -> NDArray[np.float32]:
    """The first `count` numbers of `tl.rand(seed, offsets)` in [0, 1), bit for bit."""
    counter = np.zeros((4, count), np.uint32)
    counter[0] = np.arange(count, dtype=np.uint32)
    seed %= 1 << 64
    bits = philox_4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))[0].view(np.int32)
    # Triton folds negative words by complement, then scales 31 bits so that the largest stays below 1.
    words = np.where(bits < 0, ~bits, bits).astype(np.float32)
    result: NDArray[np.float32] = words * np.float32(4.6566127342e-10)
    return result


def dropout(x: Float64, p: float, seed: int) -> Float64:
    """x / (1 - p) where the random number at that position is at least p, else 0."""
    p32 = np.float32(p)
    keep = uniform(seed, x.size).reshape(x.shape) >= p32
    return np.divide(x, 1 - float(p32), out=np.zeros_like(x), where=keep)
