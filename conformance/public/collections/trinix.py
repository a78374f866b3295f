"""trinix: activations, norms and rotary embedding for transformers."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import normal

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
kernels: Any = Lazy("trinix.kernels")
T = Table()

TYPES = ("float32", "float16")
X, W, BIAS = normal(4, 16, 512), normal(512), normal(512)


def _halves(function: Any) -> Any:
    """A gated activation: the first half of a row times a function of the second."""

    def call(x: Any) -> Any:
        up, gate = x.chunk(2, -1)
        return up * function(gate)

    return call


for name, reference in (
    ("GeGLU", _halves(lambda x: F.gelu(x, approximate="tanh"))),
    ("ReGLU", _halves(lambda x: F.relu(x))),
    ("SwiGLU", _halves(lambda x: F.silu(x))),
    ("Mish", lambda x: F.mish(x)),
    ("QuickGELU", lambda x: x * torch.sigmoid(1.702 * x)),
    ("SquaredReLU", lambda x: F.relu(x).square()),
):
    T.add(
        name.lower(),
        lambda x, name=name: getattr(kernels, f"Triton{name}Kernel").apply(x),
        reference,
        {"x": X},
        types=TYPES,
        gradients=("x",),
    )
T.add(
    "layernorm",
    lambda x, w, b: kernels.TritonLayerNormFunction.apply(x, w, b, 1e-5),
    lambda x, w, b: F.layer_norm(x, (512,), w, b, 1e-5),
    {"x": X, "w": W, "b": BIAS},
    types=TYPES,
    gradients=("x", "w", "b"),
)
T.add(
    "rmsnorm",
    lambda x, w: kernels.TritonRMSNormKernel.apply(x, w, 1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": X, "w": W},
    types=TYPES,
    gradients=("x", "w"),
)

COLLECTION = Collection(
    name="trinix",
    package="trinix",
    version="0.1.4",
    licence="Apache-2.0",
    needs="torch 2.0, Triton 2.0",
    entries=T.entries(),
)
