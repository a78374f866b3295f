"""moe-ops: routing of tokens to experts, and products of groups of rows."""

from __future__ import annotations

import itertools
from typing import Any

from triton_porting_kit.conformance.public.entries import FLOATS, Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import made, normal, uniform

torch: Any = Lazy("torch")
package: Any = Lazy("moe_ops")
T = Table()

TOKENS, WIDTH, EXPERTS, EACH = 64, 96, 8, 2
BOUNDS = (0, 10, 10, 60, 128)
"""Rows of four groups, one of them empty."""


def _routed(g: Any) -> Any:
    return torch.rand(TOKENS, EXPERTS, generator=g).topk(EACH).indices


def _there_and_back(x: Any, index: Any, weights: Any) -> Any:
    rows, places, _ = package.permute(x, index.to(torch.int32), 0, EXPERTS)
    return package.unpermute(rows, places, weights, TOKENS, EACH)


T.add(
    "permute_unpermute",
    _there_and_back,
    lambda x, index, weights: x * weights.sum(-1, keepdim=True).to(x.dtype),
    {"x": normal(TOKENS, WIDTH), "index": made(_routed), "weights": uniform(TOKENS, EACH, dtype="float32")},
    gradients=("x", "weights"),
    eager=False,
)


def _topk(x: Any) -> Any:
    values, index = x.topk(EACH, -1)
    return values.softmax(-1), index


T.add(
    "fused_topk_softmax",
    lambda x: package.fused_topk_softmax(x, EACH),
    _topk,
    {"x": made(lambda g: torch.stack([torch.randperm(40, generator=g) / 8 for _ in range(TOKENS)]), "case")},
    types=FLOATS,
    gradients=("x",),
)


def _grouped(a: Any, b: Any) -> Any:
    parts = [a[i:j] @ b[k].T for k, (i, j) in enumerate(itertools.pairwise(BOUNDS))]
    return torch.cat(parts)


T.add(
    "grouped_gemm",
    lambda a, b: package.grouped_gemm(a, b, torch.tensor(BOUNDS, dtype=torch.int32, device=a.device)),
    _grouped,
    {"a": normal(128, WIDTH), "b": normal(4, 80, WIDTH)},
    gradients=("a", "b"),
    seconds=300.0,
)

COLLECTION = Collection(
    name="moe_ops",
    package="moe-ops",
    version="0.1.0",
    licence="MIT",
    needs="names no release",
    entries=T.entries(),
)
