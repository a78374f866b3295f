"""References that several collections share, in operations of torch that take any floating-point type."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public.entries import Lazy

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")


def rms_norm(x: Any, weight: Any | None, eps: float, offset: float = 0.0) -> Any:
    """Root mean square norm of the last dimension."""
    scaled = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return scaled if weight is None else scaled * (weight + offset)


def rotate_half(x: Any) -> Any:
    """The two halves of the last dimension, turned by a right angle."""
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def rope(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embedding, whose pairs are half a row apart."""
    return x * cos + rotate_half(x) * sin


def rope_interleaved(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embedding of neighbouring pairs. `cos` and `sin` have half as many elements."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def attention(
    q: Any, k: Any, v: Any, scale: float | None = None, *, causal: bool = False, bias: Any | None = None
) -> Any:
    """Attention of (batch, heads, length, width); fewer heads of keys are shared."""
    shared = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal, scale=scale)


def softmax_cross_entropy(
    logits: Any, target: Any, reduction: str = "mean", smoothing: float = 0.0, softcap: float = 0.0
) -> Any:
    """Cross entropy of logits, which may be capped by tanh."""
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    return F.cross_entropy(logits, target, reduction=reduction, label_smoothing=smoothing)


def token_log_probabilities(logits: Any, tokens: Any) -> Any:
    """The logarithm of each token's probability."""
    return logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
