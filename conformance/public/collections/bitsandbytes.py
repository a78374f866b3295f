"""bitsandbytes: its backend in Triton, which quantises to 4 and 8 bits and updates weights."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public.collections.conch import FP4, NF4, nearest
from triton_porting_kit.conformance.public.entries import FLOATS, Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import made, normal

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
ops: Any = Lazy("bitsandbytes.backends.triton.ops")
T = Table()

X = {"x": normal(64, 256)}


def _four_bits(x: Any, kind: str) -> Any:
    packed, absmax = ops.quantize_4bit(x, 64, kind, torch.uint8)
    return ops.dequantize_4bit(packed, absmax, 64, kind, x.shape, x.dtype).flatten()


for kind, values in (("nf4", NF4), ("fp4", FP4)):
    T.add(
        f"quantize_4bit_{kind}",
        lambda x, kind=kind: _four_bits(x, kind),
        nearest(values),
        X,
        types=("float32",),  # in shorter types, many elements are half-way between two values
        eager=False,
    )

CODE = made(lambda g: torch.linspace(-1, 1, 256), "float32")


def _eight_bits(x: Any, code: Any) -> Any:
    codes, absmax = ops.quantize_blockwise(x, code, 64)
    return ops.dequantize_blockwise(codes, absmax, code, 64, x.dtype)


def _nearest_eight(x: Any, code: Any) -> Any:
    blocks = x.double().view(-1, 64)
    most = blocks.abs().amax(-1, keepdim=True)
    found = (blocks / most + 1) * 127.5
    return ((found.round() / 127.5 - 1) * most).view(x.shape).to(x.dtype)


T.add(
    "quantize_blockwise",
    _eight_bits,
    _nearest_eight,
    {**X, "code": CODE},
    types=FLOATS,
    eager=False,
    tolerance=1000.0,
    because="an element half-way between two codes may be rounded to either: 1/255 of the largest of its block",
)


def _adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    """One step of Adam, the third, with weight decay as in AdamW."""
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    rate = 1e-3 * (1 - 0.999**3) ** 0.5 / (1 - 0.9**3)
    p = p + -rate * (m / (v.sqrt() + 1e-8 * (1 - 0.999**3) ** 0.5))
    return p * (1 - 1e-3 * 0.01), m, v


def _own_adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    ops.optimizer_update_32bit(
        "adam", g, p, m, v, None, 0.0, 0.0, 0.9, 0.999, 0.0, 0.0, 1e-8, 0.01, 3, 1e-3, 1.0
    )
    return p, m, v


T.add(
    "optimizer_adam",
    _own_adam,
    _adam,
    {
        "p": normal(5000),
        "g": normal(5000),
        "m": normal(5000, scale=0.1, dtype="float32"),
        "v": made(lambda g: torch.rand(5000, generator=g), "float32"),
    },
    types=FLOATS,
)


def _lion(p: Any, g: Any, m: Any) -> Any:
    p = p * (1 - 1e-3 * 0.01) - 1e-3 * torch.sign(0.9 * m + 0.1 * g)
    return p, 0.99 * m + 0.01 * g


def _own_lion(p: Any, g: Any, m: Any) -> Any:
    ops.optimizer_update_32bit(
        "lion", g, p, m, None, None, 0.0, 0.0, 0.9, 0.99, 0.0, 0.0, 1e-8, 0.01, 3, 1e-3, 1.0
    )
    return p, m


T.add(
    "optimizer_lion",
    _own_lion,
    _lion,
    {"p": normal(5000), "g": normal(5000), "m": normal(5000, scale=0.1, dtype="float32")},
    types=FLOATS,
)

COLLECTION = Collection(
    name="bitsandbytes",
    package="bitsandbytes",
    version="0.50.2",
    licence="MIT",
    needs="torch 2.4 or later",
    arranged="its Triton backend, which it registers for Intel GPUs, is called directly",
    entries=T.entries(),
)
