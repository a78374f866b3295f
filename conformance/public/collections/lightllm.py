"""lightllm: kernels for serving language models."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import Collection, Known, Lazy, Table
from triton_porting_kit.conformance.public.inputs import integers, normal, uniform

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
llama: Any = Lazy("lightllm.models.llama.triton_kernel")
gemma: Any = Lazy("lightllm.models.gemma_2b.triton_kernel")
bloom: Any = Lazy("lightllm.models.bloom.triton_kernel")
base: Any = Lazy("lightllm.common.basemodel.triton_kernel")
T = Table()
GLOBAL = (
    "kernels read the global number `_kAlpha`, which is no `tl.constexpr`; Triton 3.0 and later refuse that "
    "(gemma_2b/triton_kernel/gelu_and_mul.py:20)"
)

X, W = normal(30, 500), normal(500)

T.add(
    "rmsnorm_forward",
    lambda x, w: llama.rmsnorm.rmsnorm_forward(x, w, 1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": X, "w": W},
    large={"x": normal(4096, 2048), "w": normal(2048)},
)
T.add(
    "layernorm_forward",
    lambda x, w, b: bloom.layernorm.layernorm_forward(x, w, b, 1e-5),
    lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
    {"x": X, "w": W, "b": W},
)


def _gated(function: Any) -> Any:
    """Writes its result to the first half of its input's columns; no time is taken, because eager needs no copy."""

    def call(x: Any) -> Any:
        written = x.clone()
        function(written)
        return written[:, : x.shape[1] // 2]

    return call


T.add(
    "silu_and_mul_fwd",
    _gated(lambda x: llama.silu_and_mul.silu_and_mul_fwd(x)),
    lambda x: F.silu(x[:, : x.shape[1] // 2]) * x[:, x.shape[1] // 2 :],
    {"x": normal(30, 400)},
)
T.add(
    "gelu_and_mul_fwd",
    _gated(lambda x: gemma.gelu_and_mul.gelu_and_mul_fwd(x)),
    lambda x: F.gelu(x[:, : x.shape[1] // 2], approximate="tanh") * x[:, x.shape[1] // 2 :],
    {"x": normal(30, 400)},
    known={"*": Known("release", GLOBAL)},
)


def _rotary(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    q, k = q.clone(), k.clone()
    llama.rotary_emb.rotary_emb_fwd(q, k, cos, sin)
    return q, k


def _rotated(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    both = [torch.cat((part, part), -1)[:, None] for part in (cos, sin)]
    return ref.rope(q, *both), ref.rope(k, *both)


T.add(
    "rotary_emb_fwd",
    _rotary,
    _rotated,
    {"q": normal(40, 6, 64), "k": normal(40, 2, 64), "cos": normal(40, 32), "sin": normal(40, 32)},
)


def _copied(k: Any, places: Any) -> Any:
    out = torch.zeros(50, *k.shape[1:], dtype=k.dtype, device=k.device)
    base.destindex_copy_kv.destindex_copy_kv(k, places, out)
    return out


T.add(
    "destindex_copy_kv",
    _copied,
    lambda k, places: torch.zeros(50, *k.shape[1:], dtype=k.dtype).index_copy(0, places, k),
    {"k": normal(20, 4, 64), "places": lambda g, kind: torch.randperm(50, generator=g)[:20]},
)


def _unpacked(packed: Any) -> Any:
    """(K / 8, N) of int32, eight numbers of 4 bits along K, as (K, N)."""
    shifts = 4 * torch.arange(8)[None, :, None]
    return ((packed[:, None] >> shifts) & 15).flatten(0, 1)


def _of_int4(x: Any, weights: Any, scales: Any, zeros: Any) -> Any:
    group = x.shape[1] // scales.shape[0]
    shift = _unpacked(zeros.T.contiguous()).T.repeat_interleave(group, 0)
    return x @ ((_unpacked(weights) - shift).to(x.dtype) * scales.repeat_interleave(group, 0))


def _int4(m: int, k: int, n: int) -> dict[str, Any]:
    # Fields of four bits; the uppermost bit stays clear, because int32 is shifted arithmetically.
    limit = 1 << 31
    return {
        "x": normal(m, k),
        "w": integers(k // 8, n, high=limit, dtype="int32"),
        "s": uniform(k // 128, n, low=0.5, high=1.5),
        "z": integers(k // 128, n // 8, high=limit, dtype="int32"),
    }


for name, count in (("vector", 1), ("matrix", 24)):
    T.add(
        f"matmul_dequantize_int4_s1_{name}",
        lambda x, w, s, z: base.dequantize_gemm_int4.matmul_dequantize_int4_s1(x, w, s, z, 128),
        lambda x, w, s, z: _of_int4(x, w, s, z),
        _int4(count, 1024, 128),
        seconds=600.0,
    )
    T.add(
        f"matmul_dequantize_int4_s2_{name}",
        lambda x, w, s, z: base.dequantize_gemm_int4.matmul_dequantize_int4_s2(x, w, s, z, 128),
        lambda x, w, s, z: _of_int4(x, w, s, z),
        _int4(count, 1024, 128),
        large=_int4(count, 2048, 2048),
        seconds=600.0,
    )
    T.add(
        f"matmul_dequantize_int8_{name}",
        lambda x, w, s: base.dequantize_gemm_int8.matmul_dequantize_int8(x, w, s[None]),
        lambda x, w, s: x @ (w.to(x.dtype) * s),
        {
            "x": normal(count, 256),
            "w": integers(256, 128, low=-127, high=128, dtype="int8"),
            "s": uniform(128),
        },
        large={
            "x": normal(count, 2048),
            "w": integers(2048, 2048, low=-127, high=128, dtype="int8"),
            "s": uniform(2048),
        },
        seconds=600.0,
    )

T.add(
    "matmul_int8",
    lambda a, x, b, y: base.quantize_gemm_int8.matmul_int8(
        a, x, b, y, torch.empty(a.shape[0], b.shape[1], device=a.device)
    ),
    lambda a, x, b, y: (a.double() @ b.double()) * x[:, None] * y,
    {
        "a": integers(32, 256, low=-127, high=128, dtype="int8"),
        "x": uniform(32),
        "b": integers(256, 128, low=-127, high=128, dtype="int8"),
        "y": uniform(128),
    },
    types=("float32",),
    eager=False,
    seconds=600.0,
)

COLLECTION = Collection(
    name="lightllm",
    package="lightllm",
    version="0.0.1",
    licence="Apache-2.0",
    needs="names no release",
    entries=T.entries(),
    bare=("lightllm.common.basemodel",),
    arranged="`lightllm.common.basemodel`'s own `__init__`, which imports models, is not run",
)
