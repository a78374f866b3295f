"""Liger-Kernel: layers and losses for training language models."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import WIDE, Collection, Known, Lazy, Table
from triton_porting_kit.conformance.public.inputs import integers, made, normal, uniform

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
ops: Any = Lazy("liger_kernel.ops")
T = Table()

ROWS, WIDTH, WORDS = 64, 512, 1000
X, W, B = normal(ROWS, WIDTH), normal(WIDTH), normal(WIDTH)
XL, WL = normal(2048, 4096), normal(4096)
LOGITS_L, LABELS_L = normal(512, 32000), integers(512, high=32000)
LOGITS, LABELS = normal(ROWS, WORDS), integers(ROWS, high=WORDS)


def _log(*shape: int) -> Any:
    return made(lambda g: torch.randn(*shape, generator=g).log_softmax(-1), "case")


def _probabilities(*shape: int) -> Any:
    return made(lambda g: torch.randn(*shape, generator=g).softmax(-1), "case")


# --- norms ---------------------------------------------------------------------------------------------

for casting, offset in (("llama", 0.0), ("gemma", 1.0)):
    T.add(
        f"rms_norm_{casting}",
        lambda x, w, casting=casting, offset=offset: ops.LigerRMSNormFunction.apply(
            x, w, 1e-6, offset, casting
        ),
        lambda x, w, offset=offset: ref.rms_norm(x, w, 1e-6, offset),
        {"x": X, "w": W},
        large={"x": XL, "w": WL},
        gradients=("x", "w"),
    )
T.add(
    "rms_norm_wide",
    lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": normal(4, 7000), "w": normal(7000)},
    gradients=("x", "w"),
)
T.add(
    "layer_norm",
    lambda x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-5),
    lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
    {"x": X, "w": W, "b": B},
    large={"x": XL, "w": WL, "b": WL},
    gradients=("x", "w", "b"),
)
T.add(
    "group_norm",
    lambda x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, x.shape[1], 4, 1e-5),
    lambda x, w, b: F.group_norm(x, 4, w, b, 1e-5),
    {"x": normal(4, 16, 128), "w": normal(16), "b": normal(16)},
    large={"x": normal(32, 64, 4096), "w": normal(64), "b": normal(64)},
    gradients=("x", "w", "b"),
    slow="sums and products of each element, some ten in the gradient, are rounded to bfloat16, for which x86 has no "
    "arithmetic; eager computes them in float32",
)


def _added(x: Any, r: Any, w: Any) -> Any:
    total = x + r
    return ref.rms_norm(total, w, 1e-6), total


T.add(
    "fused_add_rms_norm",
    lambda x, r, w: ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False),
    _added,
    {"x": X, "r": X, "w": W},
    large={"x": XL, "r": XL, "w": WL},
    gradients=("x", "r", "w"),
)
T.add(
    "modulated_rms_norm",
    lambda x, w, scale, shift: ops.LigerModulatedRMSNormFunction.apply(
        x, w, scale, shift, 1e-6, 0.0, "llama", False
    ),
    lambda x, w, scale, shift: (1 + scale) * ref.rms_norm(x, w, 1e-6) + shift,
    {"x": X, "w": W, "scale": X, "shift": X},
    gradients=("x", "w", "scale", "shift"),
)


def _poly_norm(x: Any, w: Any, b: Any) -> Any:
    parts = [ref.rms_norm(x**power, None, 1e-6) for power in (3, 2, 1)]
    return w[0] * parts[0] + w[1] * parts[1] + w[2] * parts[2] + b


T.add(
    "poly_norm",
    lambda x, w, b: ops.LigerPolyNormFunction.apply(x, w, b, 1e-6, False),
    _poly_norm,
    {"x": X, "w": normal(3), "b": normal()},
    large={"x": XL, "w": normal(3), "b": normal()},
    gradients=("x", "w", "b"),
)
T.add(
    "dyt",
    lambda x, alpha, gamma, beta: ops.LigerDyTFunction.apply(x, alpha, gamma, beta),
    lambda x, alpha, gamma, beta: torch.tanh(alpha * x) * gamma + beta,
    {"x": X, "alpha": uniform(1, low=0.3, high=0.9), "gamma": W, "beta": B},
    large={"x": XL, "alpha": uniform(1), "gamma": WL, "beta": WL},
    gradients=("x", "alpha", "gamma", "beta"),
)

# --- activations -----------------------------------------------------------------------------------------

T.add(
    "swiglu",
    lambda a, b: ops.LigerSiLUMulFunction.apply(a, b),
    lambda a, b: F.silu(a) * b,
    {"a": X, "b": X},
    large={"a": XL, "b": XL},
    gradients=("a", "b"),
)
T.add(
    "fused_gate_up",
    lambda y: ops.swiglu.LigerFusedGateUpSiLUMulFunction.apply(y),
    lambda y: F.silu(y[..., : WIDTH // 2]) * y[..., WIDTH // 2 :],
    {"y": X},
    gradients=("y",),
)
T.add(
    "geglu",
    lambda a, b: ops.LigerGELUMulFunction.apply(a, b),
    lambda a, b: F.gelu(a, approximate="tanh") * b,
    {"a": X, "b": X},
    large={"a": XL, "b": XL},
    gradients=("a", "b"),
)
T.add(
    "relu_squared",
    lambda x: ops.LigerReLUSquaredFunction.apply(x),
    lambda x: F.relu(x).square(),
    {"x": X},
    large={"x": XL},
    gradients=("x",),
)
T.add(
    "softmax",
    lambda x: ops.LigerSoftmaxFunction.apply(x),
    lambda x: x.softmax(-1),
    {"x": LOGITS},
    large={"x": XL},
    gradients=("x",),
)


def _sparsemax(x: Any) -> Any:
    ordered = x.sort(-1, descending=True).values
    count = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
    sums = ordered.cumsum(-1)
    size = (1 + count * ordered > sums).sum(-1, keepdim=True)
    return F.relu(x - (sums.gather(-1, size - 1) - 1) / size)


T.add(
    "sparsemax",
    lambda x: ops.LigerSparsemaxFunction.apply(x, -1),
    _sparsemax,
    {"x": normal(ROWS, 200)},
    types=WIDE,
    gradients=("x",),
)

# --- embeddings of positions -----------------------------------------------------------------------------

HEADS = {"q": normal(2, 4, 32, 64), "k": normal(2, 2, 32, 64)}


def _angles(*shape: int, cosine: bool) -> Any:
    def make(g: Any) -> Any:
        angles = torch.outer(torch.arange(shape[-2]), 0.1 ** torch.linspace(0, 3, shape[-1] // 2))
        return torch.cat((angles, angles), -1).expand(shape).clone()

    return made(lambda g: make(g).cos() if cosine else make(g).sin(), "case")


T.add(
    "rope",
    lambda q, k, cos, sin: ops.LigerRopeFunction.apply(q, k, cos, sin),
    lambda q, k, cos, sin: (ref.rope(q, cos[:, None], sin[:, None]), ref.rope(k, cos[:, None], sin[:, None])),
    {**HEADS, "cos": _angles(1, 32, 64, cosine=True), "sin": _angles(1, 32, 64, cosine=False)},
    large={
        "q": normal(2, 32, 1024, 128),
        "k": normal(2, 8, 1024, 128),
        "cos": _angles(1, 1024, 128, cosine=True),
        "sin": _angles(1, 1024, 128, cosine=False),
    },
    gradients=("q", "k"),
)


def _sections(table: Any) -> Any:
    """The table of each of three coordinates, for its section of 8, 12 and 12 pairs."""
    parts = table.split([8, 12, 12] * 2, -1)
    return torch.cat([part[k % 3] for k, part in enumerate(parts)], -1)[:, None]


T.add(
    "qwen2vl_mrope",
    lambda q, k, cos, sin: ops.LigerQwen2VLMRopeFunction.apply(q, k, cos, sin, [8, 12, 12]),
    lambda q, k, cos, sin: tuple(ref.rope(x, _sections(cos), _sections(sin)) for x in (q, k)),
    {
        **HEADS,
        "cos": _angles(3, 2, 32, 64, cosine=True),
        "sin": _angles(3, 2, 32, 64, cosine=False),
    },
    gradients=("q", "k"),
)

# --- losses ------------------------------------------------------------------------------------------------

for name, more in (
    ("cross_entropy", {}),
    ("cross_entropy_smoothed", {"smoothing": 0.1}),
    ("cross_entropy_capped", {"softcap": 30.0}),
    ("cross_entropy_sum", {"reduction": "sum"}),
    ("cross_entropy_none", {"reduction": "none"}),
):
    T.add(
        name,
        lambda x, y, more=more: ops.LigerCrossEntropyFunction.apply(
            x * 1.0,  # the function overwrites its input
            y,
            None,
            -100,
            0.0,
            more.get("smoothing", 0.0),
            more.get("reduction", "mean"),
            more.get("softcap"),
        )[0],
        lambda x, y, more=more: ref.softmax_cross_entropy(x, y, **more),
        {"x": LOGITS, "y": LABELS},
        large={"x": LOGITS_L, "y": LABELS_L},
        gradients=() if name.endswith("none") else ("x",),
    )
T.add(
    "cross_entropy_weighted",
    lambda x, y, w: ops.LigerCrossEntropyFunction.apply(x * 1.0, y, w, -100, 0.0, 0.0, "mean", None)[0],
    lambda x, y, w: F.cross_entropy(x, y, w.to(x.dtype)),
    {"x": LOGITS, "y": LABELS, "w": uniform(WORDS, low=0.5, high=2.0, dtype="float32")},
    gradients=("x",),
)
T.add(
    "fused_linear_cross_entropy",
    lambda x, w, y: ops.LigerFusedLinearCrossEntropyFunction.apply(x, w, y)[0],
    lambda x, w, y: F.cross_entropy(x @ w.T, y),
    {"x": normal(ROWS, 128), "w": normal(WORDS, 128, scale=0.1), "y": LABELS},
    gradients=("x", "w"),
    tolerance=4.0,
    because="gradients of chunks are summed in the type",
)


def _jsd(x: Any, y: Any, beta: float) -> Any:
    p, q = y.exp(), x.exp()
    if beta == 0.0:
        return (p * (y - x)).sum() / len(x)
    if beta == 1.0:
        return (q * (x - y)).sum() / len(x)
    middle = (beta * p + (1 - beta) * q).log()
    return (beta * p * (y - middle) + (1 - beta) * q * (x - middle)).sum() / len(x)


for beta in (0.0, 0.3, 1.0):
    T.add(
        f"jsd_{beta:g}".replace(".", "_"),
        lambda x, y, beta=beta: ops.LigerJSDFunction.apply(x, y, None, beta),
        lambda x, y, beta=beta: _jsd(x, y, beta),
        {"x": _log(ROWS, WORDS), "y": _log(ROWS, WORDS)},
        large={"x": _log(512, 32000), "y": _log(512, 32000)},
        gradients=("x",),
    )
T.add(
    "fused_linear_jsd",
    lambda x, w, y, v: ops.LigerFusedLinearJSDFunction.apply(x, w, y, v),
    lambda x, w, y, v: _jsd((x @ w.T).log_softmax(-1), (y @ v.T).log_softmax(-1), 0.5),
    {
        "x": normal(ROWS, 64),
        "w": normal(WORDS, 64, scale=0.1),
        "y": normal(ROWS, 128),
        "v": normal(WORDS, 128, scale=0.1),
    },
    gradients=("x", "w"),
    tolerance=4.0,
    because="gradients of chunks are summed in the type",
)
for reduction in ("batchmean", "sum", "mean"):
    T.add(
        f"kl_div_{reduction}",
        lambda x, y, reduction=reduction: ops.LigerKLDivLossFunction.apply(x, y, reduction),
        lambda x, y, reduction=reduction: F.kl_div(x, y, reduction=reduction),
        {"x": _log(ROWS, WORDS), "y": _probabilities(ROWS, WORDS)},
        large={"x": _log(512, 32000), "y": _probabilities(512, 32000)},
        gradients=("x",),
    )
T.add(
    "tvd",
    lambda p, q: ops.LigerTVDLossFunction.apply(p, q),
    lambda p, q: (p - q).abs().sum() / (2 * len(p)),
    {"p": _probabilities(ROWS, WORDS), "q": _probabilities(ROWS, WORDS)},
    large={"p": _probabilities(512, 32000), "q": _probabilities(512, 32000)},
    gradients=("p",),
)


def _grpo(logits: Any, tokens: Any, old: Any, reference: Any, advantages: Any) -> Any:
    found = ref.token_log_probabilities(logits[:, :-1], tokens)
    ratio = (found - old).exp()
    advantage = advantages[:, None]
    loss = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
    off = reference - found
    loss = loss + 0.04 * (off.exp() - off - 1)
    return loss.mean(-1).mean()


T.add(
    "grpo_loss",
    lambda logits, tokens, old, reference, advantages: ops.GrpoLossFunction.apply(
        logits, old, reference, tokens, advantages, None, 1.0, 0.04, 0.2, 0.2, False
    )[0],
    _grpo,
    {
        "logits": normal(2, 17, 256),
        "tokens": integers(2, 16, high=256),
        "old": normal(2, 16, scale=0.5, shift=-5.5, dtype="float32"),
        "reference": normal(2, 16, scale=0.5, shift=-5.5, dtype="float32"),
        "advantages": normal(2, dtype="float32"),
    },
    gradients=("logits",),
)


_LUSPO = Known(
    "package",
    "the gradient of the loss has the shape (B, 1) and is read at L places (liger_kernel/ops/grpo_loss.py:474)",
)


def _luspo(logits: Any, tokens: Any, old: Any, advantages: Any, level: str) -> Any:
    """The loss of length-unbiased sequences without a penalty; importance by token or by sequence."""
    ratio = ref.token_log_probabilities(logits[:, :-1], tokens) - old
    if level == "sequence":
        ratio = ratio.mean(-1, keepdim=True).expand(ratio.shape)
    ratio, advantage = ratio.exp(), advantages[:, None]
    loss = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
    return (loss * tokens.shape[-1]).mean()


for level in ("token", "sequence"):
    T.add(
        f"grpo_loss_luspo_{level}",
        lambda logits, tokens, old, advantages, level=level: ops.GrpoLossFunction.apply(
            logits, old, None, tokens, advantages, None, 1.0, 0.0, 0.2, 0.2, False, "luspo", None, True, level
        )[0],
        lambda logits, tokens, old, advantages, level=level: _luspo(logits, tokens, old, advantages, level),
        {
            "logits": normal(2, 17, 256),
            "tokens": integers(2, 16, high=256),
            "old": normal(2, 16, scale=0.1, shift=-5.5, dtype="float32"),
            "advantages": normal(2, dtype="float32"),
        },
        gradients=("logits",),
        known={"*-gradient": _LUSPO} if level == "token" else {},
    )

# --- layers ------------------------------------------------------------------------------------------------


def _moe(x: Any, gate_up: Any, down: Any, index: Any, weights: Any) -> Any:
    total = torch.zeros_like(x)
    for expert in range(len(down)):
        gate, up = (x @ gate_up[expert].T).chunk(2, -1)
        share = torch.where(index == expert, weights, torch.zeros_like(weights)).sum(-1, keepdim=True)
        total = total + share * ((F.silu(gate) * up) @ down[expert].T)
    return total


T.add(
    "fused_moe",
    lambda x, gate_up, down, index, weights: ops.LigerFusedMoEFunction.apply(
        x, gate_up, down, index, weights
    ),
    _moe,
    {
        "x": normal(ROWS, 64),
        "gate_up": normal(4, 128, 64, scale=0.1),
        "down": normal(4, 64, 64, scale=0.1),
        "index": made(lambda g: torch.rand(ROWS, 4, generator=g).topk(2).indices, "int32"),
        "weights": uniform(ROWS, 2),
    },
    gradients=("x", "gate_up", "down", "weights"),
    tolerance=2.0,
    because="results of the experts are rounded before they are summed",
    seconds=300.0,
)


def _attention_residual(values: Any, query: Any, norm: Any) -> Any:
    scores = (ref.rms_norm(values, norm, 1e-6) * query).sum(-1)
    return (scores.softmax(0).unsqueeze(-1) * values).sum(0)


T.add(
    "attn_res",
    lambda values, query, norm: ops.LigerAttnResFunction.apply(values, query, norm, 1e-6),
    _attention_residual,
    {"values": normal(5, 2, 16, 128), "query": normal(128, scale=0.1), "norm": normal(128)},
    gradients=("values", "query", "norm"),
)

COLLECTION = Collection(
    name="liger",
    package="liger-kernel",
    version="0.8.5",
    licence="BSD-2-Clause",
    needs="torch 2.1.2, Triton 2.3.1 or later",
    entries=T.entries(),
)
