"""xformers: building blocks of transformers."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import Collection, Known, Lazy, Table
from triton_porting_kit.conformance.public.inputs import made, normal

torch: Any = Lazy("torch")
norms: Any = Lazy("xformers.ops.rmsnorm")
indexing: Any = Lazy("xformers.ops.indexing")
tiles: Any = Lazy("xformers.ops.tiled_matmul")
T = Table()

X, W = normal(30, 500), normal(500)
LARGE = {"x": normal(4096, 2048), "w": normal(2048)}


def _permuted(count: int, high: int) -> Any:
    return made(lambda g: torch.randperm(high, generator=g)[:count])


T.add(
    "rms_norm",
    lambda x, w: norms.rms_norm(x, w, 1e-6),
    lambda x, w: ref.rms_norm(x, w, 1e-6),
    {"x": X, "w": W},
    large=LARGE,
)
T.add(
    "rms_norm_plain",
    lambda x: norms.rms_norm(x, None, 1e-6),
    lambda x: ref.rms_norm(x, torch.ones(x.shape[-1], dtype=x.dtype), 1e-6),
    {"x": X},
)


def _added(x: Any, y: Any, w: Any) -> Any:
    total = x.clone()
    return norms.rms_norm_add(total, y, w, 1e-6), total


T.add(
    "rms_norm_add",
    _added,
    lambda x, y, w: (ref.rms_norm(x + y, w, 1e-6), x + y),
    {"x": X, "y": X, "w": W},
)
T.add(
    "scaled_index_add",
    lambda x, i, s, f: indexing.scaled_index_add(x.clone(), i, s, f, 0.5),
    lambda x, i, s, f: x.index_add(0, i, s * f, alpha=0.5),
    {"x": normal(20, 7, 256), "i": _permuted(12, 20), "s": normal(12, 7, 256), "f": normal(256)},
    gradients=("x", "s", "f"),
)
T.add(
    "scaled_index_add_plain",
    lambda x, i, s: indexing.scaled_index_add(x.clone(), i, s),
    lambda x, i, s: x.index_add(0, i, s),
    {"x": normal(20, 7, 256), "i": _permuted(12, 20), "s": normal(12, 7, 256)},
    gradients=("x", "s"),
)
T.add(
    "index_select_cat",
    lambda x, y, i, j: indexing.index_select_cat([x, y], [i, j]),
    lambda x, y, i, j: torch.cat([x[i].flatten(), y[j].flatten()]),
    {"x": normal(20, 256), "y": normal(30, 384), "i": _permuted(12, 20), "j": _permuted(9, 30)},
    gradients=("x", "y"),
)


def _tiled(multiply: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return multiply([[a, b]], [[c], [d]])


def _whole(left: Any, right: Any) -> Any:
    return torch.cat(left[0], 1) @ torch.cat([row[0] for row in right], 0)


T.add(
    "tiled_matmul",
    lambda a, b, c, d: _tiled(tiles.tiled_matmul, a, b, c, d),
    lambda a, b, c, d: _tiled(_whole, a, b, c, d),
    {"a": normal(64, 48), "b": normal(64, 32), "c": normal(48, 80), "d": normal(32, 80)},
    seconds=600.0,
    known={
        "*": Known(
            "gpu",
            "its cost model asks NVML for the clock of the chip (xformers/ops/_triton/matmul_perf_model.py:52)",
        )
    },
)

COLLECTION = Collection(
    name="xformers",
    package="xformers",
    version="0.0.35",
    licence="BSD-3-Clause",
    needs="torch 2.10",
    entries=T.entries(),
    bare=("xformers.ops",),
    arranged="`xformers.ops`'s own `__init__`, which imports attention of CUDA, is not run",
)
