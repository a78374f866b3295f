"""flash-linear-attention: linear attention, delta rules and the layers around them."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import Collection, Function, Input, Lazy, Table
from triton_porting_kit.conformance.public.inputs import integers, made, normal, uniform

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
ops: Any = Lazy("fla.ops")
modules: Any = Lazy("fla.modules")
T = Table()

TYPES = ("float32", "bfloat16")
B, L, H, D = 1, 100, 2, 32
QKV = {"q": normal(B, L, H, D), "k": normal(B, L, H, D), "v": normal(B, L, H, D)}


def _decay(*shape: int) -> Input:
    """Logarithms of decays near one."""
    return made(lambda g: F.logsigmoid(torch.randn(*shape, generator=g) + 3.0), "case")


def _unit(*shape: int) -> Input:
    return made(lambda g: F.normalize(torch.randn(*shape, generator=g), dim=-1), "case")


def recurrence(
    q: Any, k: Any, v: Any, g: Any | None = None, beta: Any | None = None, *, scale: float | None = None
) -> Any:
    """Linear attention, one step after another: decays, then the delta rule where there is `beta`.

    Shapes: (batch, length, heads, width). `g` has a decay for each head, or for each head and channel of the keys.
    """
    q = q * (q.shape[-1] ** -0.5 if scale is None else scale)
    state = torch.zeros(*q.shape[:1], *q.shape[2:], v.shape[-1], dtype=q.dtype, device=q.device)
    found = []
    for t in range(q.shape[1]):
        key, value = k[:, t], v[:, t]
        if g is not None:
            step = g[:, t] if g.ndim == 4 else g[:, t, :, None]
            state = state * step.exp()[..., None]
        if beta is not None:
            value = (value - (key[..., None] * state).sum(-2)) * beta[:, t, :, None]
        state = state + key[..., None] * value[..., None, :]
        found.append((q[:, t, :, :, None] * state).sum(-2))
    return torch.stack(found, 1)


def _mixer(
    name: str, call: Function, inputs: dict[str, Input], reference: Function = recurrence, **fields: Any
) -> None:
    fields.setdefault("gradients", tuple(inputs))
    T.add(
        name,
        lambda **x: call(**x)[0],
        reference,
        inputs,
        types=fields.pop("types", TYPES),
        eager=False,
        tolerance=fields.pop("tolerance", 4.0),
        because="states and decays within a chunk are rounded to the type",
        seconds=300.0,
        **fields,
    )


G = {"g": _decay(B, L, H)}
GK = {"g": _decay(B, L, H, D)}
DELTA = {**QKV, "k": _unit(B, L, H, D), "beta": uniform(B, L, H)}
_mixer("chunk_linear_attn", lambda **x: ops.linear_attn.chunk_linear_attn(**x, normalize=False), QKV)
_mixer("fused_recurrent_linear_attn", lambda **x: ops.linear_attn.fused_recurrent_linear_attn(**x), QKV)
_mixer("chunk_gla", lambda **x: ops.gla.chunk_gla(**x), {**QKV, **GK})
_mixer(
    "fused_recurrent_gla",
    lambda q, k, v, g: ops.gla.fused_recurrent_gla(q, k, v, gk=g),
    {**QKV, **GK},
)
_mixer("chunk_simple_gla", lambda **x: ops.simple_gla.chunk_simple_gla(**x), {**QKV, **G})
_mixer("fused_recurrent_simple_gla", lambda **x: ops.simple_gla.fused_recurrent_simple_gla(**x), {**QKV, **G})
_mixer("parallel_simple_gla", lambda **x: ops.simple_gla.parallel_simple_gla(**x), {**QKV, **G})


def _retention(q: Any, k: Any, v: Any) -> Any:
    heads = torch.arange(q.shape[2], dtype=q.dtype, device=q.device)
    decay = torch.log1p(-torch.exp2(-5 - heads))
    return recurrence(q, k, v, decay.expand(*q.shape[:3]))


_mixer("chunk_retention", lambda **x: ops.retention.chunk_retention(**x), QKV, _retention)
_mixer("fused_recurrent_retention", lambda **x: ops.retention.fused_recurrent_retention(**x), QKV, _retention)
_mixer(
    "chunk_delta_rule",
    lambda **x: ops.delta_rule.chunk_delta_rule(**x),
    DELTA,
    lambda q, k, v, beta: recurrence(q, k, v, None, beta),
    types=("bfloat16",),  # it refuses float32
)
_mixer(
    "fused_recurrent_delta_rule",
    lambda **x: ops.delta_rule.fused_recurrent_delta_rule(**x),
    DELTA,
    lambda q, k, v, beta: recurrence(q, k, v, None, beta),
)
_mixer("chunk_gated_delta_rule", lambda **x: ops.gated_delta_rule.chunk_gated_delta_rule(**x), {**DELTA, **G})
_mixer(
    "fused_recurrent_gated_delta_rule",
    lambda **x: ops.gated_delta_rule.fused_recurrent_gated_delta_rule(**x),
    {**DELTA, **G},
    gradients=(),
)
_mixer("chunk_kda", lambda **x: ops.kda.chunk_kda(**x), {**DELTA, **GK}, gradients=("q", "k", "v", "beta"))
_mixer("fused_recurrent_kda", lambda **x: ops.kda.fused_recurrent_kda(**x), {**DELTA, **GK}, gradients=())


def _hgrn(x: Any, g: Any) -> Any:
    state, found = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = g[:, t].exp() * state + x[:, t]
        found.append(state)
    return torch.stack(found, 1)


for name in ("chunk_hgrn", "fused_recurrent_hgrn"):
    _mixer(
        name,
        lambda x, g, name=name: getattr(ops.hgrn, name)(x, g),
        {"x": normal(2, L, 64), "g": _decay(2, L, 64)},
        _hgrn,
    )


def _rwkv6(r: Any, k: Any, v: Any, w: Any, u: Any) -> Any:
    state = torch.zeros(*r.shape[:1], *r.shape[2:], v.shape[-1], dtype=r.dtype, device=r.device)
    found = []
    for t in range(r.shape[1]):
        now = k[:, t, :, :, None] * v[:, t, :, None, :]
        found.append((r[:, t, :, :, None] * (state + u[None, :, :, None] * now)).sum(-2))
        state = state * w[:, t].exp()[..., None] + now
    return torch.stack(found, 1) * r.shape[-1] ** -0.5


RWKV = {"r": QKV["q"], "k": QKV["k"], "v": QKV["v"], "w": GK["g"], "u": normal(H, D)}
for name in ("chunk_rwkv6", "fused_recurrent_rwkv6"):
    _mixer(name, lambda name=name, **x: getattr(ops.rwkv6, name)(**x), RWKV, _rwkv6)

# --- attention -------------------------------------------------------------------------------------------


def _heads_second(function: Function) -> Function:
    """A reference on (batch, heads, length, width) for tensors with heads in third place."""

    def call(q: Any, k: Any, v: Any, *more: Any) -> Any:
        return function(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), *more).transpose(1, 2)

    return call


def _forgetting(q: Any, k: Any, v: Any, g: Any) -> Any:
    sums = g.cumsum(1).transpose(1, 2)
    bias = sums[..., :, None] - sums[..., None, :]
    seen = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).tril()
    return ref.attention(q, k, v, bias=bias.masked_fill(~seen, float("-inf")))


T.add(
    "parallel_attn",
    lambda q, k, v: ops.attn.parallel_attn(q, k, v),
    _heads_second(lambda q, k, v: ref.attention(q, k, v, causal=True)),
    {"q": normal(B, L, 4, D), "k": normal(B, L, H, D), "v": normal(B, L, H, D)},
    types=TYPES,
    gradients=("q", "k", "v"),
    tolerance=2.0,
    because="probabilities are rounded to the type",
)
T.add(
    "parallel_forgetting_attn",
    lambda q, k, v, g: ops.forgetting_attn.parallel_forgetting_attn(q, k, v, g),
    lambda q, k, v, g: _heads_second(_forgetting)(q, k, v, g),
    {**QKV, **G},
    types=TYPES,
    gradients=("q", "k", "v", "g"),
    tolerance=4.0,
    because="probabilities are rounded to the type",
)

# --- layers ------------------------------------------------------------------------------------------------

X, W, BIAS = normal(64, 500), normal(500), normal(500)
T.add(
    "rms_norm",
    lambda x, w: modules.norm.layernorm.rms_norm(x, w, None, eps=1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": X, "w": W},
    gradients=("x", "w"),
)
T.add(
    "layer_norm",
    lambda x, w, b: modules.norm.layernorm.layer_norm(x, w, b, eps=1e-5),
    lambda x, w, b: F.layer_norm(x, (500,), w, b, 1e-5),
    {"x": X, "w": W, "b": BIAS},
    gradients=("x", "w", "b"),
)
T.add(
    "l2norm",
    lambda x: modules.norm.l2norm.l2norm(x),
    lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6),
    {"x": X},
    gradients=("x",),
)
T.add(
    "rms_norm_gated",
    lambda x, g, w: modules.norm.fused_norm_gate.rms_norm_gated(x, g, w, None, eps=1e-6),
    lambda x, g, w: ref.rms_norm(x, w, 1e-6) * F.silu(g),
    {"x": X, "g": X, "w": W},
    gradients=("x", "g", "w"),
)
T.add(
    "swiglu",
    lambda x, y: modules.activations.swiglu(x, y),
    lambda x, y: F.silu(x) * y,
    {"x": X, "y": X},
    gradients=("x", "y"),
)
for name in ("sigmoid", "logsigmoid", "swish"):
    T.add(
        name,
        lambda x, name=name: getattr(modules.activations, name)(x),
        lambda x, name=name: F.silu(x) if name == "swish" else getattr(F, name)(x),
        {"x": X},
        gradients=("x",),
    )
T.add(
    "rotary_embedding",
    lambda x, cos, sin: modules.rotary.rotary_embedding(x, cos, sin),
    lambda x, cos, sin: ref.rope(
        x, torch.cat((cos, cos), -1)[:, None].to(x.dtype), torch.cat((sin, sin), -1)[:, None].to(x.dtype)
    ),
    {"x": normal(2, L, H, D), "cos": normal(L, D // 2), "sin": normal(L, D // 2)},
    types=TYPES,
    gradients=("x",),
)


def _convolution(x: Any, w: Any, b: Any) -> Any:
    width = w.shape[-1]
    turned = F.pad(x.transpose(1, 2), (width - 1, 0))
    return F.silu(F.conv1d(turned, w[:, None], b, groups=w.shape[0])).transpose(1, 2)


T.add(
    "causal_conv1d",
    lambda x, w, b: modules.causal_conv1d.causal_conv1d(x, w, b, activation="silu", backend="triton")[0],
    _convolution,
    {"x": normal(2, L, 64), "w": normal(64, 4), "b": normal(64)},
    types=TYPES,
    gradients=("x", "w", "b"),
)
T.add(
    "token_shift",
    lambda x: modules.token_shift.token_shift(x),
    lambda x: F.pad(x, (0, 0, 1, -1)) - x,
    {"x": normal(2, L, 64)},
    types=TYPES,
    gradients=("x",),
)
T.add(
    "cross_entropy_loss",
    lambda x, y: modules.fused_cross_entropy.ops.cross_entropy_loss(x * 1.0, y)[0],
    lambda x, y: F.cross_entropy(x, y, reduction="none"),
    {"x": normal(64, 1000), "y": integers(64, high=1000)},
    types=TYPES,
    gradients=("x",),
)
T.add(
    "fused_linear_cross_entropy",
    lambda x, y, w: modules.fused_linear_cross_entropy.ops.fused_linear_cross_entropy_loss(x, y, w),
    lambda x, y, w: F.cross_entropy(x @ w.T, y),
    {"x": normal(64, 96), "y": integers(64, high=1000), "w": normal(1000, 96, scale=0.1)},
    types=TYPES,
    gradients=("x", "w"),
    tolerance=4.0,
    because="logits and gradients of chunks are rounded to the type",
)
T.add(
    "fused_kl_div",
    lambda x, t, w, u: modules.fused_kl_div.ops.fused_kl_div_loss(x, t, w, u),
    lambda x, t, w, u: F.kl_div(
        (x @ w.T).log_softmax(-1), (t @ u.T).log_softmax(-1), reduction="batchmean", log_target=True
    ),
    {
        "x": normal(64, 96),
        "t": normal(64, 96),
        "w": normal(500, 96, scale=0.1),
        "u": normal(500, 96, scale=0.1),
    },
    types=TYPES,
    gradients=("x", "w"),
    tolerance=4.0,
    because="logits and gradients of chunks are rounded to the type",
)
T.add(
    "mean_pooling",
    lambda x: ops.utils.pooling.mean_pooling(x, 32),
    lambda x: torch.stack([part.mean(1) for part in x.split(32, 1)], 1),
    {"x": normal(2, L, H, D)},
    types=TYPES,
    gradients=("x",),
)
T.add(
    "chunk_global_cumsum",
    lambda x: ops.utils.cumsum.chunk_global_cumsum(x),
    lambda x: x.cumsum(1),
    {"x": normal(2, L, H)},
    types=TYPES,
    tolerance=2.0,
    because="sums in another order",
)
T.add(
    "chunk_local_cumsum",
    lambda x: ops.utils.cumsum.chunk_local_cumsum(x, 32),
    lambda x: torch.cat([part.cumsum(1) for part in x.split(32, 1)], 1),
    {"x": normal(2, L, H)},
    types=TYPES,
)

COLLECTION = Collection(
    name="fla",
    package="fla-core",
    version="0.6.0",
    licence="MIT",
    needs="torch 2.7, Triton 3.3 or later",
    requires=("einops==0.8.2",),
    entries=T.entries(),
)
