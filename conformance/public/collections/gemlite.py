"""gemlite: products with packed weights of few bits."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public.entries import Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import integers, normal, uniform

torch: Any = Lazy("torch")
core: Any = Lazy("gemlite.core")
T = Table()


def _linear(bits: int, kind: str) -> Any:
    def call(x: Any, w: Any, s: Any, z: Any) -> Any:
        element = {torch.float16: core.DType.FP16, torch.bfloat16: core.DType.BF16}[x.dtype]
        layer = core.GemLiteLinearTriton(
            W_nbits=bits,
            group_size=64,
            in_features=w.shape[1],
            out_features=w.shape[0],
            input_dtype=element,
            output_dtype=element,
        )
        layer.pack(w, s, z)
        return layer.forward_manual(x, matmul_type=kind)

    return call


def _grouped(x: Any, w: Any, s: Any, z: Any) -> Any:
    weights = (w.reshape(-1, 64).to(x.dtype) - z) * s
    return x @ weights.view(w.shape).T


KINDS = {
    "GEMV": 1,
    "GEMV_SPLITK": 1,
    "GEMV_REVSPLITK": 1,
    "GEMM_SPLITK": 16,
    "GEMM": 40,
}
for bits in (8, 4, 2, 1):
    for kind, rows in KINDS.items():
        T.add(
            f"linear_{bits}_bits_{kind.lower()}",
            _linear(bits, kind),
            _grouped,
            {
                "x": normal(rows, 256, scale=0.1),
                "w": integers(128, 256, high=1 << bits, dtype="uint8"),
                "s": uniform(512, 1, low=0.5, high=1.5),
                "z": uniform(512, 1, high=1 << bits),
            },
            types=("float16", "bfloat16"),
            eager=False,
            seconds=600.0,
        )

COLLECTION = Collection(
    name="gemlite",
    package="gemlite",
    version="0.6.0.post2",
    licence="Apache-2.0",
    needs="names no release",
    entries=T.entries(),
    source=True,
    folder="gemlite-0.6.0.post2",
    requires=("tqdm==4.70.1",),
)
