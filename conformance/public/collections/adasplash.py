"""AdaSplash: sparse attention by entmax."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public.entries import WIDE, Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import normal

torch: Any = Lazy("torch")
package: Any = Lazy("adasplash")
unmasked: Any = Lazy("adasplash.adasplash_no_block_mask")
T = Table()


def entmax(x: Any, alpha: float) -> Any:
    """alpha-entmax of the last dimension: its threshold by bisection, then by the formula of its support.

    With p_i = max((alpha - 1) x_i - t, 0) ** (1 / (alpha - 1)), t makes the sum one (arXiv:1905.05702).
    """
    scaled, power = (alpha - 1) * x, 1 / (alpha - 1)
    with torch.no_grad():
        most = scaled.amax(-1, keepdim=True)
        low, high = most - 1, most - x.shape[-1] ** (1 - alpha)
        for _ in range(60):
            middle = (low + high) / 2
            above = (scaled - middle).clamp(min=0).pow(power).sum(-1, keepdim=True) >= 1
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    # One step of Newton's method from the root is the root; its derivative is that of the threshold.
    rest = (scaled - low).clamp(min=0)
    slope = power * rest.pow(power - 1).where(rest > 0, torch.zeros_like(rest)).sum(-1, keepdim=True)
    threshold = low + (rest.pow(power).sum(-1, keepdim=True) - 1) / slope.detach()
    return (scaled - threshold).clamp(min=0).pow(power)


for alpha in (1.5, 2.0):
    T.add(
        f"entmax_{alpha:g}".replace(".", "_"),
        lambda x, alpha=alpha: package.triton_entmax(x, alpha=alpha, n_iter=10, fast_math=False),
        lambda x, alpha=alpha: entmax(x, alpha),
        {"x": normal(64, 256)},
        types=WIDE,
        gradients=("x",),
        eager=False,
        tolerance=16.0,
        because="the threshold is iterated in float32",
        seconds=300.0,
    )


def _attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~seen, -1e4)
    return entmax(scores, 1.5) @ v


QKV = {name: normal(1, 2, 128, 64) for name in "qkv"}
for causal in (False, True):
    T.add(
        f"adasplash_v1{'_causal' if causal else ''}",
        lambda q, k, v, causal=causal: package.adasplash_v1(q, k, v, alpha=1.5, is_causal=causal, niter=15),
        lambda q, k, v, causal=causal: _attention(q, k, v, causal),
        QKV,
        types=("float32", "float16"),
        gradients=("q", "k", "v"),
        eager=False,
        tolerance=64.0,
        because="thresholds are iterated, and probabilities are rounded to the type",
        seconds=400.0,
    )
    T.add(
        f"adasplash_no_block_mask{'_causal' if causal else ''}",
        lambda q, k, v, causal=causal: unmasked.sparse_attn(q, k, v, alpha=1.5, is_causal=causal, niter=15),
        lambda q, k, v, causal=causal: _attention(q, k, v, causal),
        QKV,
        types=("float32",),
        gradients=("q", "k", "v"),
        eager=False,
        tolerance=64.0,
        because="thresholds are iterated, and probabilities are rounded to the type",
        seconds=400.0,
    )

COLLECTION = Collection(
    name="adasplash",
    package="adasplash",
    version="0.2.2",
    licence="BSD-3-Clause",
    needs="names no release",
    entries=T.entries(),
)
