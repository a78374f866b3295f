"""SageAttention: attention whose scores are products of 8-bit integers."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import HALF, Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import normal

torch: Any = Lazy("torch")
package: Any = Lazy("sageattention")
T = Table()


def _spread(call: Any) -> Any:
    """The mean error of a block of 16 results: what 8 bits of a score change has no bound that is tight for one."""
    return lambda **x: call(**x).unflatten(-1, (-1, 16)).mean(-1)


for width in (64, 96, 128):
    for causal in (False, True):
        T.add(
            f"sageattn_{width}{'_causal' if causal else ''}",
            _spread(lambda q, k, v, causal=causal: package.sageattn(q, k, v, is_causal=causal)),
            _spread(lambda q, k, v, causal=causal: ref.attention(q, k, v, causal=causal)),
            {"q": normal(1, 4, 150, width), "k": normal(1, 2, 150, width), "v": normal(1, 2, 150, width)},
            types=HALF,
            tolerance=10.0,
            because="queries and keys are rounded to 8 bits",
        )


def _varlen(q: Any, k: Any, v: Any, causal: bool) -> Any:
    parts = [x.split([50, 100], 0) for x in (q, k, v)]
    found = []
    for one in zip(*parts, strict=True):
        heads = [x.transpose(0, 1)[None] for x in one]
        found.append(ref.attention(*heads, causal=causal)[0].transpose(0, 1))
    return torch.cat(found)


def _own_varlen(q: Any, k: Any, v: Any, causal: bool) -> Any:
    bounds = torch.tensor([0, 50, 150], dtype=torch.int32, device=q.device)
    return package.sageattn_varlen(q, k, v, bounds, bounds, 100, 100, is_causal=causal)


for causal in (False, True):
    T.add(
        f"sageattn_varlen{'_causal' if causal else ''}",
        _spread(lambda q, k, v, causal=causal: _own_varlen(q, k, v, causal)),
        _spread(lambda q, k, v, causal=causal: _varlen(q, k, v, causal)),
        {"q": normal(150, 4, 64), "k": normal(150, 2, 64), "v": normal(150, 2, 64)},
        types=HALF,
        tolerance=10.0,
        because="queries and keys are rounded to 8 bits",
    )

COLLECTION = Collection(
    name="sageattention",
    package="sageattention",
    version="1.0.6",
    licence="BSD-3-Clause",
    needs="names no release",
    entries=T.entries(),
)
