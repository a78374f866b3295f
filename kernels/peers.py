"""The same calculations in NumPy and torch, for comparing times.

Each function takes the operands in their own type, `out` and the case's options, and writes to `out` if the library
supports it. torch is imported only for torch peers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import Case
from .places import Operand

Peer = Callable[..., Any]


def numpy_operands(operands: tuple[Operand, ...]) -> list[Any] | None:
    """The operands as NumPy arrays of their own type; None if NumPy lacks the type."""
    if any(operand.dtype == "bfloat16" for operand in operands):
        return None
    return [operand.values.astype(operand.dtype) for operand in operands]


def numpy_call(case: Case, operands: tuple[Operand, ...]) -> Callable[[], Any] | None:
    """A call of the NumPy peer on these operands, or None if there is no peer."""
    arrays, peer = numpy_operands(operands), NUMPY_PEERS.get(case.kernel)
    if arrays is None or peer is None:
        return None
    out = peer(*arrays, out=None, **case.options)
    out = out if isinstance(out, np.ndarray) else None
    return lambda: peer(*arrays, out=out, **case.options)


def torch_call(case: Case, operands: tuple[Operand, ...]) -> Callable[[], Any] | None:
    """A call of the torch peer on these operands, or None without a peer or without torch.

    Each call receives the result of the first one as `out`; peers that cannot write to it ignore it.
    """
    try:
        import torch

        from .torch_peers import TORCH_PEERS
    except ImportError:
        return None
    if (peer := TORCH_PEERS.get(case.kernel)) is None:
        return None
    arrays = [torch.tensor(operand.values).to(getattr(torch, operand.dtype)) for operand in operands]
    out = peer(*arrays, out=None, **case.options)
    return lambda: peer(*arrays, out=out, **case.options)


def _softmax(x: Any, out: Any) -> Any:
    out = np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    return np.divide(out, out.sum(axis=1, keepdims=True), out=out)


def _matmul(a: Any, b: Any, out: Any, leaky_relu: bool = False) -> Any:
    out = np.matmul(a, b, out=out)
    return np.where(out >= 0, out, out * np.asarray(0.01, out.dtype)) if leaky_relu else out


def _area(x1: Any, y1: Any, x2: Any, y2: Any) -> Any:
    return np.maximum(x2 - x1, 0) * np.maximum(y2 - y1, 0)


def _giou_loss(pred: Any, target: Any, valid: Any, out: Any) -> Any:
    p, t = (np.moveaxis(boxes.astype(np.float32), 2, 0) for boxes in (pred, target))
    overlap = _area(*np.maximum(p[:2], t[:2]), *np.minimum(p[2:], t[2:]))
    hull = _area(*np.minimum(p[:2], t[:2]), *np.maximum(p[2:], t[2:]))
    union = _area(*p) + _area(*t) - overlap
    loss = 1 - overlap / np.maximum(union, 1e-12) + (hull - union) / np.maximum(hull, 1e-12)
    return np.divide(np.where(valid, loss, 0).sum(axis=1), np.maximum(valid.sum(axis=1), 1), out=out)


def _layer_norm(x: Any, weight: Any, bias: Any, out: Any) -> Any:
    out = np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
    out /= np.sqrt((out * out).mean(axis=1, keepdims=True) + np.asarray(1e-5, x.dtype))
    out *= weight
    out += bias
    return out


def _layer_norm_backward(dy: Any, x: Any, weight: Any, mean: Any, rstd: Any, out: Any) -> Any:
    normalised = (x - mean[:, None]) * rstd[:, None]
    scaled = dy * weight
    dx = scaled - normalised * (scaled * normalised).mean(axis=1, keepdims=True)
    dx -= scaled.mean(axis=1, keepdims=True)
    dx *= rstd[:, None]
    return dx, (dy * normalised).sum(axis=0), dy.sum(axis=0)


def _dropout(x: Any, out: Any, p: float, seed: int) -> Any:
    keep = np.random.default_rng(seed % 2**64).random(x.shape, np.float32) >= p
    return np.multiply(x, keep / np.asarray(1 - p, x.dtype), out=out)


NUMPY_PEERS: dict[str, Peer] = {
    "vector_add": lambda x, y, out: np.add(x, y, out=out),
    "softmax": _softmax,
    "matmul": _matmul,
    "giou_loss": _giou_loss,
    "layer_norm": _layer_norm,
    "layer_norm_backward": _layer_norm_backward,
    "dropout": _dropout,
    "cumulative_sum": lambda x, out: np.cumsum(x, axis=1, out=out),
    "sort_rows": lambda x, out: np.sort(x, axis=1),
}
