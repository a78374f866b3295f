"""unsloth: kernels for fine-tuning language models."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import integers, normal

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
norms: Any = Lazy("unsloth.kernels.rms_layernorm")
layers: Any = Lazy("unsloth.kernels.layernorm")
ropes: Any = Lazy("unsloth.kernels.rope_embedding")
losses: Any = Lazy("unsloth.kernels.cross_entropy_loss")
swiglu: Any = Lazy("unsloth.kernels.swiglu")
geglu: Any = Lazy("unsloth.kernels.geglu")
lora: Any = Lazy("unsloth.kernels.fast_lora")
fused: Any = Lazy("unsloth.kernels.qk_norm_rope")
T = Table()

X, W = normal(4, 30, 512), normal(512)
XL, WL = normal(1, 2048, 4096), normal(4096)


# --- norms ---------------------------------------------------------------------------------------------


def _rms(x: Any, w: Any, gemma: bool) -> Any:
    return norms.fast_rms_layernorm(SimpleNamespace(weight=w, variance_epsilon=1e-6), x, gemma)


for name, gemma in (("llama", False), ("gemma", True)):
    T.add(
        f"rms_layernorm_{name}",
        lambda x, w, gemma=gemma: _rms(x, w, gemma),
        lambda x, w, gemma=gemma: ref.rms_norm(x, w, 1e-6, float(gemma)),
        {"x": X, "w": W},
        large={"x": XL, "w": WL},
        gradients=("x", "w"),
    )
T.add(
    "rms_layernorm_heads",
    lambda x, w: _rms(x, w, False),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": normal(2, 30, 6, 128), "w": normal(128)},
    gradients=("x", "w"),
)
T.add(
    "layernorm",
    lambda x, w, b: layers.Fast_Layernorm.apply(x, w, b, 1e-5),
    lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
    {"x": X, "w": W, "b": W},
    large={"x": XL, "w": WL, "b": WL},
    gradients=("x", "w", "b"),
)

# --- rotary embedding -----------------------------------------------------------------------------------


def _both_halves(cos: Any, sin: Any) -> Any:
    return [torch.cat((part, part), -1) for part in (cos, sin)]


ROTARY = {
    "q": normal(2, 6, 40, 64),
    "k": normal(2, 2, 40, 64),
    "cos": normal(64, 32),
    "sin": normal(64, 32),
}


def _rope(q: Any, k: Any, cos: Any, sin: Any, places: Any = None) -> Any:
    return ropes.fast_rope_embedding(q.clone(), k.clone(), *_both_halves(cos, sin), places)


def _roped(q: Any, k: Any, cos: Any, sin: Any, places: Any = None) -> Any:
    length = q.shape[2]
    rows = [
        part[:length] if places is None else part[places.long()][:, None] for part in _both_halves(cos, sin)
    ]
    return ref.rope(q, *rows), ref.rope(k, *rows)


T.add("rope_embedding", _rope, _roped, ROTARY, gradients=("q", "k"))
T.add(
    "rope_embedding_indices",
    _rope,
    _roped,
    {**ROTARY, "places": integers(2, 40, high=64, dtype="int32")},
    gradients=("q", "k"),
)


def _norm_rope(q: Any, k: Any, v: Any, w: Any, cos: Any, sin: Any) -> Any:
    # The public function takes another way on tensors whose device is not of the type `cuda`.
    places = torch.zeros(1, dtype=torch.int32, device=q.device)
    both = _both_halves(cos, sin)
    return fused.Fast_QK_Norm_RoPE.apply(q, k, v, w, *both, places, 1e-6, 1e-6, False)[:2]


def _normed_rope(q: Any, k: Any, v: Any, w: Any, cos: Any, sin: Any) -> Any:
    rows = [part[: q.shape[1], None] for part in _both_halves(cos, sin)]
    return [ref.rope(ref.rms_norm(x, weight, 1e-6), *rows) for x, weight in ((q, v), (k, w))]


T.add(
    "qk_norm_rope",
    _norm_rope,
    _normed_rope,
    {
        "q": normal(2, 40, 6, 64),
        "k": normal(2, 40, 2, 64),
        "v": normal(64),
        "w": normal(64),
        "cos": normal(64, 32),
        "sin": normal(64, 32),
    },
    gradients=("q", "k"),
)

# --- losses ---------------------------------------------------------------------------------------------


def _loss(logits: Any, labels: Any, softcap: float = 0.0, scale: float = 0.0) -> Any:
    return losses.fast_cross_entropy_loss(logits, labels, softcap, scale)


def _reference(logits: Any, labels: Any, softcap: float = 0.0, scale: float = 0.0) -> Any:
    scaled = logits * scale if scale else logits
    return ref.softmax_cross_entropy(scaled.flatten(0, 1), labels.flatten(), softcap=softcap)


def _labels(*shape: int, high: int) -> Any:
    """Some positions have no label: -100."""

    def make(generator: Any, kind: Any) -> Any:
        found = torch.randint(0, high, shape, generator=generator)
        return found.masked_fill(torch.rand(shape, generator=generator) < 0.2, -100)

    return make


SMALL = {"logits": normal(2, 30, 1000), "labels": _labels(2, 30, high=1000)}
for name, options in (("", {}), ("_softcap", {"softcap": 30.0}), ("_scaled", {"scale": 0.5})):
    T.add(
        f"cross_entropy_loss{name}",
        lambda logits, labels, options=options: _loss(logits, labels, **options),
        lambda logits, labels, options=options: _reference(logits, labels, **options),
        SMALL,
        large={} if options else {"logits": normal(1, 512, 32000), "labels": _labels(1, 512, high=32000)},
        gradients=("logits",),
    )
T.add(
    "cross_entropy_loss_chunked",
    _loss,
    _reference,
    {"logits": normal(1, 4, 70000), "labels": _labels(1, 4, high=70000)},
    gradients=("logits",),
)

# --- gated activations ----------------------------------------------------------------------------------

GATED = {"e": X, "g": X}
GATED_L = {"e": normal(1, 2048, 5504), "g": normal(1, 2048, 5504)}
BACKWARD = {"d": normal(120, 512), "e": normal(120, 512), "g": normal(120, 512)}


def _gradients(gate: Any) -> Any:
    """What the backward kernels give: the product, and the gradients of the second factor and of the gate."""

    def call(d: Any, e: Any, g: Any) -> Any:
        leaf = e.detach().requires_grad_()
        activated = gate(leaf)
        (slope,) = torch.autograd.grad(activated, leaf, d * g)
        return (activated * g).detach(), (d * activated).detach(), slope

    return call


GATES = {
    "swiglu": (lambda: (swiglu.swiglu_fg_kernel, swiglu.swiglu_DWf_DW_dfg_kernel), lambda x: F.silu(x)),
    "geglu_exact": (
        lambda: (geglu.geglu_exact_forward_kernel, geglu.geglu_exact_backward_kernel),
        lambda x: F.gelu(x),
    ),
    "geglu_approx": (
        lambda: (geglu.geglu_approx_forward_kernel, geglu.geglu_approx_backward_kernel),
        lambda x: F.gelu(x, approximate="tanh"),
    ),
}
for name, (kernels, gate) in GATES.items():
    T.add(
        f"{name}_forward",
        lambda e, g, kernels=kernels: kernels()[0](e, g),
        lambda e, g, gate=gate: gate(e) * g,
        GATED,
        large=GATED_L,
    )
    T.add(
        f"{name}_backward",
        lambda d, e, g, kernels=kernels: kernels()[1](d.clone(), e.clone(), g.clone()),
        _gradients(gate),
        BACKWARD,
        eager=False,
        tolerance=2.0,
        because="the activation and its product with the gradient are rounded to the type",
    )

# --- low-rank adaptation --------------------------------------------------------------------------------


def _adapted(x: Any, w: Any, a: Any, b: Any) -> Any:
    return x @ w.T + (x @ a.T) @ b.T * 2.0


def _projections(x: Any, ws: list[Any], adapters: list[Any]) -> list[Any]:
    return [_adapted(x, w, *adapters[2 * k : 2 * k + 2]) for k, w in enumerate(ws)]


def _parts(ws: list[Any], adapters: list[Any]) -> list[Any]:
    """For each projection: its weight, no quantisation, both factors of its adapter, and their scale."""
    return [part for k, w in enumerate(ws) for part in (w, None, adapters[2 * k], adapters[2 * k + 1], 2.0)]


NAMES = ("a1", "b1", "a2", "b2", "a3", "b3")


def _mlp(x: Any, gate: Any, up: Any, down: Any, **adapters: Any) -> Any:
    parts = _parts([gate, up, down], [adapters[name] for name in NAMES])
    return lora.LoRA_MLP.apply(
        x.clone(), *parts, swiglu.swiglu_fg_kernel, swiglu.swiglu_DWf_DW_dfg_kernel, True
    )


def _mlp_reference(x: Any, gate: Any, up: Any, down: Any, **adapters: Any) -> Any:
    found = [adapters[name] for name in NAMES]
    e, g = _projections(x, [gate, up], found[:4])
    return _adapted(F.silu(e) * g, down, *found[4:])


def _adapters(*shapes: tuple[int, int]) -> dict[str, Any]:
    """The factors of the adapters of projections from and to so many elements, of rank 8."""
    made = {}
    for (source, result), a, b in zip(shapes, NAMES[0::2], NAMES[1::2], strict=True):
        made[a], made[b] = normal(8, source, scale=0.1), normal(result, 8, scale=0.1)
    return made


T.add(
    "lora_mlp_swiglu",
    _mlp,
    _mlp_reference,
    {
        "x": normal(2, 15, 64, scale=0.5),
        "gate": normal(96, 64, scale=0.1),
        "up": normal(96, 64, scale=0.1),
        "down": normal(64, 96, scale=0.1),
        **_adapters((64, 96), (64, 96), (96, 64)),
    },
    gradients=("x", *NAMES),
    tolerance=8.0,
    because="products and activations are rounded to the type",
)

COLLECTION = Collection(
    name="unsloth",
    package="unsloth",
    version="2026.10.9",
    licence="Apache-2.0",
    needs="torch 2.4, Triton 3.0 or later",
    entries=T.entries(),
    requires=("unsloth_zoo==2026.10.9",),
    stubs=(
        "transformers",
        "transformers.models",
        "transformers.models.llama",
        "transformers.models.llama.modeling_llama",
        "unsloth_zoo.loss_utils",
        "unsloth_zoo.patching_utils",
    ),
    bare=("unsloth", "unsloth.kernels", "unsloth_zoo", "unsloth_zoo.temporary_patches"),
    arranged=(
        "the `__init__` of `unsloth`, `unsloth.kernels` and `unsloth_zoo`, which patch other libraries, are not run; "
        "`transformers` and the parts of `unsloth_zoo` that change models are empty modules"
    ),
)
