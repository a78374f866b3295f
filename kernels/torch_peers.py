"""The torch side of `peers`; importing this module imports torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional


def _matmul(a: Any, b: Any, out: Any, leaky_relu: bool = False) -> Any:
    if a.dtype == torch.int8:
        return torch._int_mm(a, b) if out is None else torch._int_mm(a, b, out=out)
    out = torch.matmul(a, b, out=out)
    return functional.leaky_relu_(out, 0.01) if leaky_relu else out


def _area(x1: Any, y1: Any, x2: Any, y2: Any) -> Any:
    return (x2 - x1).clamp(min=0) * (y2 - y1).clamp(min=0)


def _giou_loss(pred: Any, target: Any, valid: Any, out: Any) -> Any:
    p, t = (boxes.float().unbind(2) for boxes in (pred, target))
    low = [torch.maximum(p[i], t[i]) for i in (0, 1)], [torch.minimum(p[i], t[i]) for i in (0, 1)]
    high = [torch.minimum(p[i], t[i]) for i in (2, 3)], [torch.maximum(p[i], t[i]) for i in (2, 3)]
    overlap, hull = _area(*low[0], *high[0]), _area(*low[1], *high[1])
    union = _area(*p) + _area(*t) - overlap
    loss = 1 - overlap / union.clamp(min=1e-12) + (hull - union) / hull.clamp(min=1e-12)
    return torch.div(torch.where(valid, loss, 0.0).sum(1), valid.sum(1).clamp(min=1), out=out)


def _layer_norm(x: Any, weight: Any, bias: Any, out: Any) -> Any:
    return functional.layer_norm(x, x.shape[1:], weight, bias, 1e-5)


def _layer_norm_backward(dy: Any, x: Any, weight: Any, mean: Any, rstd: Any, out: Any) -> Any:
    statistics = mean[:, None].to(x.dtype), rstd[:, None].to(x.dtype)
    bias, wanted = torch.zeros_like(weight), [True, True, True]
    return torch.ops.aten.native_layer_norm_backward(dy, x, x.shape[1:], *statistics, weight, bias, wanted)


def _gelu_residual(x: Any, residual: Any, out: Any, a: float, b: float) -> Any:
    return torch.add(functional.gelu(x * a + b), residual, out=out)


def _attention(q: Any, k: Any, v: Any, out: Any) -> Any:
    return functional.scaled_dot_product_attention(q[None], k[None], v[None])


def _attention_backward(q: Any, k: Any, v: Any, output: Any, lse: Any, dout: Any, out: Any) -> Any:
    # What autograd calls for scaled_dot_product_attention, without its bookkeeping.
    q, k, v, output, lse, dout = (array[None] for array in (q, k, v, output, lse, dout))
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        dout, q, k, v, output, lse, 0.0, False
    )


def _dropout(x: Any, out: Any, p: float, seed: int) -> Any:
    torch.manual_seed(seed)
    return functional.dropout(x, p)


TORCH_PEERS: dict[str, Callable[..., Any]] = {
    "vector_add": lambda x, y, out: torch.add(x, y, out=out),
    "softmax": lambda x, out: torch.softmax(x, 1, out=out),
    "matmul": _matmul,
    "giou_loss": _giou_loss,
    "layer_norm": _layer_norm,
    "layer_norm_backward": _layer_norm_backward,
    "dropout": _dropout,
    "gelu_residual": _gelu_residual,
    "cumulative_sum": lambda x, out: torch.cumsum(x, 1, out=out),
    "sort_rows": lambda x, out: torch.sort(x, 1, out=out),
    "attention": _attention,
    "attention_backward": _attention_backward,
}
