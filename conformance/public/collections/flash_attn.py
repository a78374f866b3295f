"""flash-attention: its parts in Triton, which are norms, a loss, and rotary embedding."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import FLOATS, Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import integers, normal

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
ops: Any = Lazy("flash_attn.ops.triton")
T = Table()

XL, WL = normal(2048, 4096), normal(4096)
X, W, BIAS = normal(64, 512), normal(512), normal(512)

T.add(
    "layer_norm_fn",
    lambda x, w, b: ops.layer_norm.layer_norm_fn(x, w, b, eps=1e-5),
    lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
    {"x": X, "w": W, "b": BIAS},
    large={"x": XL, "w": WL, "b": WL},
    gradients=("x", "w", "b"),
)
T.add(
    "rms_norm_fn",
    lambda x, w: ops.layer_norm.rms_norm_fn(x, w, None, eps=1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": X, "w": W},
    large={"x": XL, "w": WL},
    gradients=("x", "w"),
)
T.add(
    "rms_norm_residual",
    lambda x, r, w: ops.layer_norm.rms_norm_fn(x, w, None, residual=r, eps=1e-6, prenorm=True),
    lambda x, r, w: (ref.rms_norm(x + r, w, 1e-6), x + r),
    {"x": X, "r": X, "w": W},
    large={"x": XL, "r": XL, "w": WL},
    gradients=("x", "r", "w"),
)
for name, smoothing in (("cross_entropy_loss", 0.0), ("cross_entropy_loss_smoothed", 0.1)):
    T.add(
        name,
        lambda x, y, smoothing=smoothing: ops.cross_entropy.cross_entropy_loss(
            x, y, label_smoothing=smoothing
        )[0],
        lambda x, y, smoothing=smoothing: F.cross_entropy(x, y, reduction="none", label_smoothing=smoothing),
        {"x": normal(64, 1000), "y": integers(64, high=1000)},
        large={"x": normal(512, 32000), "y": integers(512, high=32000)},
        gradients=("x",),
    )
for interleaved in (False, True):
    T.add(
        f"apply_rotary{'_interleaved' if interleaved else ''}",
        lambda x, cos, sin, interleaved=interleaved: ops.rotary.apply_rotary(
            x, cos, sin, interleaved=interleaved
        ),
        lambda x, cos, sin, interleaved=interleaved: (
            ref.rope_interleaved(x, cos[:, None], sin[:, None])
            if interleaved
            else ref.rope(x, torch.cat((cos, cos), -1)[:, None], torch.cat((sin, sin), -1)[:, None])
        ),
        {"x": normal(2, 60, 4, 64), "cos": normal(60, 32), "sin": normal(60, 32)},
        large={"x": normal(2, 1024, 32, 128), "cos": normal(1024, 64), "sin": normal(1024, 64)},
        types=FLOATS,
    )

COLLECTION = Collection(
    name="flash_attn",
    package="flash-attn",
    version="2.8.3.post2",
    licence="BSD-3-Clause",
    needs="torch (names no release)",
    requires=("einops==0.8.2",),
    source=True,
    folder="flash_attn-2.8.3.post2",
    stubs=("flash_attn_2_cuda",),
    arranged="the source archive, not built; `flash_attn_2_cuda`, its CUDA extension, is an empty module",
    entries=T.entries(),
)
