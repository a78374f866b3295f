"""mamba-ssm: norms, and the scans of state-space models."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import normal, uniform

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
ops: Any = Lazy("mamba_ssm.ops.triton")
T = Table()

TYPES = ("float32", "bfloat16")
X, W, BIAS = normal(64, 512), normal(512), normal(512)

T.add(
    "layer_norm_fn",
    lambda x, w, b: ops.layer_norm.layer_norm_fn(x, w, b, eps=1e-5),
    lambda x, w, b: F.layer_norm(x, (512,), w, b, 1e-5),
    {"x": X, "w": W, "b": BIAS},
    types=TYPES,
    gradients=("x", "w", "b"),
)
T.add(
    "rms_norm_fn",
    lambda x, w: ops.layer_norm.rms_norm_fn(x, w, None, eps=1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": X, "w": W},
    types=TYPES,
    gradients=("x", "w"),
)
T.add(
    "rms_norm_residual",
    lambda x, r, w: ops.layer_norm.rms_norm_fn(x, w, None, residual=r, eps=1e-6, prenorm=True),
    lambda x, r, w: (ref.rms_norm(x + r, w, 1e-6), x + r),
    {"x": X, "r": X, "w": W},
    types=TYPES,
    gradients=("x", "r", "w"),
)
for before in (True, False):
    T.add(
        f"rmsnorm_gated_{'after' if before else 'before'}",
        lambda x, z, w, before=before: ops.layernorm_gated.rmsnorm_fn(
            x, w, None, z=z, eps=1e-6, norm_before_gate=before
        ),
        lambda x, z, w, before=before: (
            ref.rms_norm(x, w, 1e-6) * F.silu(z) if before else ref.rms_norm(x * F.silu(z), w, 1e-6)
        ),
        {"x": X, "z": X, "w": W},
        types=TYPES,
        gradients=("x", "z", "w"),
    )
T.add(
    "swiglu",
    lambda xy: ops.k_activations.swiglu(xy),
    lambda xy: F.silu(xy[:, :256]) * xy[:, 256:],
    {"xy": X},
    types=TYPES,
    gradients=("xy",),
)


def _update(state: Any, x: Any, dt: Any, a: Any, b: Any, c: Any, d: Any, z: Any, bias: Any) -> Any:
    """One step of a selective scan with softplus of the steps."""
    step = F.softplus(dt + bias)
    state = state * torch.exp(step[..., None] * a) + step[..., None] * x[..., None] * b[:, None]
    return ((state * c[:, None]).sum(-1) + x * d) * F.silu(z)


T.add(
    "selective_state_update",
    lambda state, x, dt, a, b, c, d, z, bias: ops.selective_state_update.selective_state_update(
        state, x, dt, a, b, c, D=d, z=z, dt_bias=bias, dt_softplus=True
    ),
    _update,
    {
        "state": normal(4, 64, 16),
        "x": normal(4, 64),
        "dt": normal(4, 64),
        "a": uniform(64, 16, low=-2.0, high=-0.5, dtype="float32"),
        "b": normal(4, 16),
        "c": normal(4, 16),
        "d": normal(64, dtype="float32"),
        "z": normal(4, 64),
        "bias": normal(64, dtype="float32"),
    },
    types=TYPES,
)


def _scan(x: Any, dt: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The scan of Mamba-2, one step after another; one group for all heads."""
    step = F.softplus(dt)
    state = torch.zeros(x.shape[0], *x.shape[2:], b.shape[-1], dtype=x.dtype, device=x.device)
    found = []
    for t in range(x.shape[1]):
        decay = torch.exp(step[:, t] * a)[..., None, None]
        state = state * decay + (step[:, t, :, None] * x[:, t])[..., None] * b[:, t, :, None]
        found.append((state * c[:, t, :, None]).sum(-1) + x[:, t] * d[:, None])
    return torch.stack(found, 1)


T.add(
    "mamba_chunk_scan_combined",
    lambda x, dt, a, b, c, d: ops.ssd_combined.mamba_chunk_scan_combined(
        x, dt, a, b, c, 64, D=d, dt_softplus=True
    ),
    _scan,
    {
        "x": normal(1, 100, 4, 32),
        "dt": normal(1, 100, 4, shift=-1.0, dtype="float32"),
        "a": uniform(4, low=-2.0, high=-0.5, dtype="float32"),
        "b": normal(1, 100, 1, 32),
        "c": normal(1, 100, 1, 32),
        "d": normal(4, dtype="float32"),
    },
    types=TYPES,
    gradients=("x", "dt", "a", "b", "c", "d"),
    eager=False,
    tolerance=8.0,
    because="states and decays within a chunk are rounded to the type",
    seconds=600.0,
)

COLLECTION = Collection(
    name="mamba",
    package="mamba-ssm",
    version="2.3.2.post1",
    licence="Apache-2.0",
    needs="torch, Triton (names no release)",
    requires=("einops==0.8.2",),
    source=True,
    folder="mamba_ssm-2.3.2.post1",
    stubs=("causal_conv1d", "causal_conv1d.causal_conv1d_interface", "causal_conv1d.cpp_functions"),
    bare=("mamba_ssm",),
    arranged="the source archive, not built; its `__init__`, which imports CUDA extensions and models, is not run; "
    "`causal_conv1d`, a CUDA extension, is an empty module",
    entries=T.entries(),
)
