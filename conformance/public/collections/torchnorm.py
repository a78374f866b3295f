"""torchnorm: norms for inference."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import FLOATS, Collection, Known, Lazy, Table
from triton_porting_kit.conformance.public.inputs import normal

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
fused: Any = Lazy("torchnorm._triton")
T = Table()

X, W, BIAS = normal(64, 500), normal(500), normal(500)

T.add(
    "rms_norm",
    lambda x, w: fused.fused_rms_norm(x, w, 1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": X, "w": W},
    types=FLOATS,
)
T.add(
    "fused_add_rms_norm",
    lambda x, r, w: fused.fused_add_rms_norm(x, r, w, 1e-6),
    lambda x, r, w: (ref.rms_norm(x + r, w, 1e-6), x + r),
    {"x": X, "r": X, "w": W},
    types=FLOATS,
    known={
        "float32": Known(
            "package",
            "the sum is stored as bfloat16, whatever its type is: `h.to(tl.bfloat16)` (torchnorm/_triton.py:122)",
        )
    },
)
T.add(
    "layer_norm",
    lambda x, w, b: fused.fused_layer_norm(x, w, b, 1e-5),
    lambda x, w, b: F.layer_norm(x, (500,), w, b, 1e-5),
    {"x": X, "w": W, "b": BIAS},
    types=FLOATS,
)

COLLECTION = Collection(
    name="torchnorm",
    package="torchnorm",
    version="0.1.2",
    licence="MIT",
    needs="torch 2.0",
    entries=T.entries(),
)
