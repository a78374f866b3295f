"""SageAttention: attention whose scores are products of 8-bit integers."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import HALF, Collection, Known, Lazy, Table
from triton_porting_kit.conformance.public.inputs import normal

torch: Any = Lazy("torch")
package: Any = Lazy("sageattention")
T = Table()


def _quantised(x: Any, rows: int) -> Any:
    """Rounded to 8 bits by the largest element of blocks of rows: values after both conversions."""
    found = []
    for part in x.split(rows, -2):
        scale = part.abs().amax((-1, -2), keepdim=True) / 127
        found.append((part / scale).round() * scale)
    return torch.cat(found, -2)


def _attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Attention whose queries and keys, less their mean, are quantised in blocks of 128 and 64 rows."""
    q = _quantised(q * q.shape[-1] ** -0.5, 128)
    k = _quantised(k - k.mean(-2, keepdim=True), 64)
    return ref.attention(q, k, v, 1.0, causal=causal)


def _varlen(q: Any, k: Any, v: Any, causal: bool) -> Any:
    # The package takes the mean of the keys of all sequences.
    k = k - k.mean(0, keepdim=True)
    parts = [x.split([50, 100], 0) for x in (q, k, v)]
    found = []
    for one in zip(*parts, strict=True):
        query, key, value = (x.transpose(0, 1)[None] for x in one)
        query = _quantised(query * query.shape[-1] ** -0.5, 128)
        found.append(ref.attention(query, _quantised(key, 64), value, 1.0, causal=causal)[0].transpose(0, 1))
    return torch.cat(found)


def _own_varlen(q: Any, k: Any, v: Any, causal: bool) -> Any:
    bounds = torch.tensor([0, 50, 150], dtype=torch.int32, device=q.device)
    return package.sageattn_varlen(q, k, v, bounds, bounds, 100, 100, is_causal=causal)


QUANTISED: dict[str, Any] = {
    "types": HALF,
    "eager": False,
    "tolerance": 4.0,
    "because": "a quotient near a tie may be rounded to either of two integers of 8 bits",
}
PADDED = Known(
    "package",
    "keys beyond the end of a sequence are loaded under a mask, but their scores are not masked: they take part in the "
    "softmax as zeros (attn_qk_int8_per_block.py:19 and its neighbours). Right where the length is a multiple of 64",
)
for width in (64, 96, 128):
    for causal, length in ((False, 128), (False, 150), (True, 150)):
        T.add(
            f"sageattn_{width}_{length}{'_causal' if causal else ''}",
            lambda q, k, v, causal=causal: package.sageattn(q, k, v, is_causal=causal),
            lambda q, k, v, causal=causal: _attention(q, k, v, causal),
            {
                "q": normal(1, 4, length, width),
                "k": normal(1, 2, length, width),
                "v": normal(1, 2, length, width),
            },
            known={"*": PADDED} if length % 64 and not causal else {},
            **QUANTISED,
        )
for causal in (False, True):
    T.add(
        f"sageattn_varlen{'_causal' if causal else ''}",
        lambda q, k, v, causal=causal: _own_varlen(q, k, v, causal),
        lambda q, k, v, causal=causal: _varlen(q, k, v, causal),
        {"q": normal(150, 4, 64), "k": normal(150, 2, 64), "v": normal(150, 2, 64)},
        known={} if causal else {"*": PADDED},
        **QUANTISED,
    )

COLLECTION = Collection(
    name="sageattention",
    package="sageattention",
    version="1.0.6",
    licence="BSD-3-Clause",
    needs="names no release",
    entries=T.entries(),
)
