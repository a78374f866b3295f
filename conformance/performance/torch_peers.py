"""The kernels of real size written in torch. Importing this module imports torch.

Each entry receives the operands as tensors and returns the call to time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from triton_porting_kit.conformance.kernels.problem import Operand

Call = Callable[[], Any]


def call(kernel: str, operands: Sequence[Operand], device: str) -> Call | None:
    """The call of a kernel's peer on operands; None if there is no peer."""
    if kernel not in PEERS:
        return None
    tensors = [torch.tensor(o.values).to(getattr(torch, o.kind.device)).to(device) for o in operands]
    return PEERS[kernel](*tensors)


def _simple(function: Callable[..., Any]) -> Callable[..., Call]:
    return lambda *tensors: lambda: function(*tensors)


def _swiglu(x: Any) -> Any:
    gate, value = x.chunk(2, 1)
    return functional.silu(gate) * value


def _layer_norm_backward(dy: Any, x: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    statistics = mean[:, None].to(x.dtype), rstd[:, None].to(x.dtype)
    wanted = [True, True, True]
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, x.shape[1:], *statistics, weight, torch.zeros_like(weight), wanted
    )


def _grouped(*tensors: Any) -> Any:
    return [a @ b for a, b in zip(tensors[::2], tensors[1::2], strict=True)]


def _attention(q: Any, k: Any, v: Any) -> Any:
    return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)


def _attention_backward(q: Any, k: Any, v: Any, out: Any, lse: Any, dout: Any) -> Call:
    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
    result = _attention(*leaves)
    return lambda: torch.autograd.grad(result, leaves, dout[None], retain_graph=True)


def _cross_entropy(logits: Any, target: Any) -> Call:
    leaf = logits.detach().requires_grad_()

    def step() -> Any:
        loss = functional.cross_entropy(leaf, target, reduction="none")
        return loss, torch.autograd.grad(loss.mean(), leaf)

    return step


def _area(low: Any, high: Any) -> Any:
    return (high - low).clamp(min=0).prod(-1)


def _giou(pred: Any, target: Any, valid: Any) -> Any:
    p, t = pred.float(), target.float()
    overlap = _area(torch.maximum(p[..., :2], t[..., :2]), torch.minimum(p[..., 2:], t[..., 2:]))
    hull = _area(torch.minimum(p[..., :2], t[..., :2]), torch.maximum(p[..., 2:], t[..., 2:]))
    union = _area(p[..., :2], p[..., 2:]) + _area(t[..., :2], t[..., 2:]) - overlap
    loss = 1 - overlap / union.clamp(min=1e-12) + (hull - union) / hull.clamp(min=1e-12)
    return torch.where(valid, loss, 0.0).sum(1) / valid.sum(1).clamp(min=1)


def _rotary(x: Any, cos: Any, sin: Any) -> Any:
    first, second = x.chunk(2, 2)
    c, s = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)
    return torch.cat([first * c - second * s, second * c + first * s], 2)


def _convolution(x: Any, w: Any) -> Call:
    images, filters = (
        x.permute(0, 3, 1, 2),
        w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last),
    )
    return lambda: functional.conv2d(images, filters, padding=1)


def _softmax(x: Any) -> Any:
    return torch.softmax(x, 1)


PEERS: dict[str, Callable[..., Call]] = {
    "vector-add": _simple(torch.add),
    "gelu-residual": _simple(lambda x, residual: residual + functional.gelu(x)),
    "swiglu": _simple(_swiglu),
    "softmax": _simple(_softmax),
    "online-softmax": _simple(_softmax),
    "persistent-softmax": _simple(_softmax),
    "layer-norm": _simple(lambda x, weight, bias: functional.layer_norm(x, x.shape[1:], weight, bias)),
    "layer-norm-backward": _simple(_layer_norm_backward),
    "rms-norm": _simple(lambda x, weight: functional.rms_norm(x, x.shape[1:], weight, 1e-5)),
    "matmul": _simple(torch.matmul),
    "batched-matmul": _simple(torch.matmul),
    "grouped-matmul": _simple(_grouped),
    "split-k-matmul": _simple(torch.matmul),
    "persistent-matmul": _simple(torch.matmul),
    "tuned-matmul": _simple(torch.matmul),
    "attention": _simple(_attention),
    "attention-backward": _attention_backward,
    "cross-entropy": _cross_entropy,
    "giou-loss": _simple(_giou),
    "dropout": _simple(lambda x: functional.dropout(x, 0.25)),
    "rotary": _simple(_rotary),
    "convolution": _convolution,
    "prefix-sum": _simple(lambda x: torch.cumsum(x, 0)),
    "sums": _simple(lambda x: (x.sum(1), x.sum(0))),
    "sort": _simple(lambda x: torch.sort(x, 1)),
    "top-k": _simple(lambda x: torch.topk(x, 8, 1)),
    "histogram": _simple(lambda x: torch.bincount(x[(x >= 0) & (x < 256)], minlength=256)),
    "triangle": _simple(torch.tril),
    "triangular-matmul": _simple(lambda a, b: torch.tril(a) @ b),
    "transpose": _simple(lambda x: x.T.contiguous()),
    "embedding": _simple(lambda table, index: table[index]),
}
"""The peers, by group of checks."""
