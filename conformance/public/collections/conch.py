"""conch-triton-kernels: kernels for serving language models and for vision."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import Collection, Known, Lazy, Table
from triton_porting_kit.conformance.public.inputs import integers, made, normal, uniform

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
ops: Any = Lazy("conch.ops")
T = Table()

X, W = normal(64, 512), normal(512)

T.add(
    "silu_and_mul",
    lambda x: ops.activation.silu_and_mul.silu_and_mul(x),
    lambda x: F.silu(x[:, :256]) * x[:, 256:],
    {"x": X},
)
T.add(
    "gelu_tanh_and_mul",
    lambda x: ops.activation.gelu_tanh_and_mul.gelu_tanh_and_mul(x),
    lambda x: F.gelu(x[:, :256], approximate="tanh") * x[:, 256:],
    {"x": X},
)
T.add(
    "rms_norm",
    lambda x, w: ops.normalization.rms_norm.rms_norm(x, w, 1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": X, "w": W},
)
T.add(
    "fused_add_rms_norm",
    lambda x, r, w: ops.normalization.rms_norm.fused_add_rms_norm(x, r, w, 1e-6),
    lambda x, r, w: (ref.rms_norm(x + r, w, 1e-6), x + r),
    {"x": X, "r": X, "w": W},
)
T.add(
    "gemma_rms_norm",
    lambda x, w: ops.normalization.gemma_rms_norm.gemma_rms_norm(x, w, 1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6, 1.0),
    {"x": X, "w": W},
)


def _rotated(positions: Any, q: Any, k: Any, table: Any) -> Any:
    cos, sin = (torch.cat((part, part), -1)[:, None] for part in table[positions].chunk(2, -1))
    shaped = [x.view(len(positions), -1, 64) for x in (q, k)]
    return tuple(ref.rope(x, cos, sin).flatten(1) for x in shaped)


T.add(
    "rotary_embedding",
    lambda positions, q, k, table: ops.embedding.rotary_embedding.rotary_embedding(
        positions, q, k, 64, table
    ),
    _rotated,
    {
        "positions": integers(20, high=100),
        "q": normal(20, 4 * 64),
        "k": normal(20, 2 * 64),
        "table": normal(100, 64),
    },
)


def _int8(x: Any, scale: Any) -> Any:
    return (x / scale).round().clamp(-128, 127)


T.add(
    "scaled_int8_quant",
    lambda x, scale: ops.quantization.int8.scaled_int8_quant(x, scale)[0],
    _int8,
    {"x": X, "scale": made(lambda g: torch.tensor([0.03125]), "float32")},
    steps=1,
)
T.add(
    "scaled_gemm",
    lambda a, b, sa, sb: ops.quantization.gemm.scaled_gemm(a, b, sa, sb, torch.bfloat16),
    lambda a, b, sa, sb: (a.to(sa.dtype) @ b.to(sa.dtype)) * sa * sb,
    {
        "a": integers(64, 128, low=-100, high=100, dtype="int8"),
        "b": made(lambda g: torch.randint(-100, 100, (96, 128), generator=g).T, "int8"),
        "sa": uniform(64, 1, low=0.001, high=0.01, dtype="float32"),
        "sb": uniform(1, 96, low=0.001, high=0.01, dtype="float32"),
    },
    types=("bfloat16",),
    # Where reads behind the end are errors, as of DMA engines.
    known={
        "*": Known("package", "tiles of B are read behind its end (conch/kernels/quantization/gemm.py:344)")
    },
)


def _four_bits(kind: str) -> Any:
    def call(x: Any) -> Any:
        functional = ops.quantization.bitsandbytes.functional
        packed, state = functional.quantize_4bit(x.flatten(), quant_type=kind)
        return functional.dequantize_4bit(packed, state, quant_type=kind)

    return call


NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
    0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""The values of NF4, from its paper (arXiv:2305.14314, appendix E)."""
FP4 = tuple(sign * value / 12 for sign in (1, -1) for value in (0, 0.0625, 8, 12, 4, 6, 2, 3))
"""The values of bitsandbytes' FP4, as its documentation gives them, over the largest."""


def nearest(values: tuple[float, ...]) -> Any:
    """Quantised in blocks of 64 to the nearest value of a list, and back."""

    def call(x: Any) -> Any:
        table = torch.tensor(values, dtype=torch.float64, device=x.device)
        blocks = x.double().view(-1, 64)
        most = blocks.abs().amax(-1, keepdim=True)
        found = table[((blocks / most)[..., None] - table).abs().argmin(-1)] * most
        return found.flatten().to(x.dtype)

    return call


for kind, values in (("nf4", NF4), ("fp4", FP4)):
    T.add(
        f"quantize_4bit_{kind}",
        _four_bits(kind),
        nearest(values),
        {"x": normal(16, 256)},
        types=("float32",),  # in shorter types, many elements are half-way between two values
        eager=False,
    )


def _nms(boxes: Any, scores: Any) -> Any:
    order = scores.argsort(descending=True).tolist()
    kept: list[int] = []
    for box in order:
        low = torch.maximum(boxes[box, :2], boxes[kept][:, :2])
        high = torch.minimum(boxes[box, 2:], boxes[kept][:, 2:])
        shared = (high - low).clamp(min=0).prod(-1)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
        if not (shared / (area[box] + area[kept] - shared) > 0.5).any():
            kept.append(box)
    return torch.tensor(kept, device=boxes.device)


def _boxes(g: Any) -> Any:
    corner = torch.rand(60, 2, generator=g) * 10
    return torch.cat((corner, corner + 1 + torch.rand(60, 2, generator=g) * 4), -1)


T.add(
    "nms",
    lambda boxes, scores: ops.vision.nms.nms(boxes, scores, 0.5),
    _nms,
    {"boxes": made(_boxes, "float32"), "scores": uniform(60)},
    types=("float32",),
    eager=False,
)


def _paged(q: Any, k: Any, v: Any, table: Any, lengths: Any) -> Any:
    found = []
    for n, length in enumerate(lengths.tolist()):
        keys = k[table[n]].flatten(0, 1)[:length].transpose(0, 1)[None]
        values = v[table[n]].flatten(0, 1)[:length].transpose(0, 1)[None]
        found.append(ref.attention(q[n, None, :, None], keys, values)[0, :, 0])
    return torch.stack(found)


T.add(
    "paged_attention",
    lambda q, k, v, table, lengths: ops.attention.paged_attention.paged_attention(q, k, v, table, lengths),
    _paged,
    {
        "q": normal(3, 8, 64),
        "k": normal(20, 16, 2, 64),
        "v": normal(20, 16, 2, 64),
        "table": made(lambda g: torch.randperm(20, generator=g)[:18].view(3, 6), "int32"),
        "lengths": made(lambda g: torch.tensor([5, 50, 96]), "int32"),
    },
    eager=False,
    tolerance=2.0,
    because="probabilities are rounded to the type",
)


def _cached(k: Any, v: Any, slots: Any) -> Any:
    caches = [torch.zeros(4 * 16, 2, 64, dtype=x.dtype, device=x.device) for x in (k, v)]
    for cache, x in zip(caches, (k, v), strict=True):
        cache[slots] = x
    return tuple(cache.view(4, 16, 2, 64) for cache in caches)


def _reshape_and_cache(k: Any, v: Any, slots: Any) -> Any:
    caches = [torch.zeros(4, 16, 2, 64, dtype=x.dtype, device=x.device) for x in (k, v)]
    ops.vllm.reshape_and_cache.reshape_and_cache(k, v, *caches, slots)
    return caches


T.add(
    "reshape_and_cache",
    _reshape_and_cache,
    _cached,
    {
        "k": normal(20, 2, 64),
        "v": normal(20, 2, 64),
        "slots": made(lambda g: torch.randperm(64, generator=g)[:20]),
    },
)

COLLECTION = Collection(
    name="conch",
    package="conch-triton-kernels",
    version="1.3",
    licence="Apache-2.0",
    needs="names no release",
    entries=T.entries(),
)
