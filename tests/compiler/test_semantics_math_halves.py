"""Mathematical functions of triton.language on every number of the 16-bit types, computed in float32."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from running import KINDS, Array, empty, get, make_kernel, put, ulp_distance

from triton_porting_kit.conformance.types import from_bits


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: np.array([math.nan if v != v else function(v) for v in x.tolist()])


# The expression of x in float32, and what double precision gives. Triton's sigmoid is 1 / (1 + exp(-x)), whose
# exponential overflows in float32.
FUNCTIONS: list[tuple[str, Callable[[Array], Array]]] = [
    ("tl.exp(x)", np.exp),
    ("tl.exp2(x)", np.exp2),
    ("tl.log(x)", np.log),
    ("tl.log2(x)", np.log2),
    ("tl.sin(x)", np.sin),
    ("tl.cos(x)", np.cos),
    ("tl.erf(x)", _each(math.erf)),
    ("tl.sqrt(x)", np.sqrt),
    ("tl.sqrt_rn(x)", np.sqrt),
    ("tl.rsqrt(x)", lambda x: 1 / np.sqrt(x)),
    ("tl.abs(x)", np.abs),
    ("tl.floor(x)", np.floor),
    ("tl.ceil(x)", np.ceil),
    ("tl.sigmoid(x)", lambda x: 1 / (1 + np.exp(-x).astype(np.float32).astype(np.float64))),
    ("tl.fdiv(1.0, x)", lambda x: 1 / x),
    ("tl.div_rn(x, 3.0)", lambda x: x / 3),
    ("tl.fma(x, x, x)", lambda x: x * x + x),
    ("tl.math.exp(x)", np.exp),
    # What needs no float32, on the type itself.
    ("tl.abs(h)", np.abs),
    ("tl.fma(h, h, h)", lambda x: x * x + x),
]


def source() -> str:
    lines = [
        "def halves(X, O, B: tl.constexpr):",
        "    i = tl.program_id(0) * B + tl.arange(0, B)",
        "    n = tl.num_programs(0) * B",
        "    h = tl.load(X + i)",
        "    x = h.to(tl.float32)",
    ]
    lines += [f"    tl.store(O + {k} * n + i, {e})" for k, (e, _) in enumerate(FUNCTIONS)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_every_half(kind: str) -> None:
    patterns = np.arange(1 << 16, dtype=np.uint16)
    x = patterns.view(np.float16) if kind == "fp16" else from_bits(patterns, KINDS[kind])
    out = empty((len(FUNCTIONS), x.size), kind)
    make_kernel(source())[(64,)](put(x, kind), out, B=1024)
    wide = x.astype(np.float64)
    for (expression, function), values in zip(FUNCTIONS, get(out), strict=True):
        with np.errstate(all="ignore"):
            exact = function(wide)
            distance = ulp_distance(values, exact, KINDS[kind])
        # A float32 that is a unit off is so much of a unit of the narrower type; sigmoid has three such steps.
        bound = 0.5 + 4 * 2.0 ** (KINDS[kind].precision - 24)
        worst = int(distance.argmax())
        assert distance[worst] <= bound, f"{expression}: {distance[worst]} units at {x[worst]!r}"
