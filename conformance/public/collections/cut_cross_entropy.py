"""cut-cross-entropy: the loss of a language model's head without its logits."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public import references as ref
from triton_porting_kit.conformance.public.entries import HALF, Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import integers, normal

package: Any = Lazy("cut_cross_entropy")
T = Table()

INPUTS = {
    "e": normal(64, 128),
    "c": normal(500, 128, scale=0.1),
    "y": integers(64, high=500),
}
for name, own, more in (
    ("mean", {}, {}),
    ("sum", {"reduction": "sum"}, {"reduction": "sum"}),
    ("none", {"reduction": "none"}, {"reduction": "none"}),
    ("softcap", {"softcap": 20.0}, {"softcap": 20.0}),
):
    T.add(
        f"linear_cross_entropy_{name}",
        lambda e, c, y, own=own: package.linear_cross_entropy(e, c, y, filter_eps=None, impl="cce", **own),
        lambda e, c, y, more=more: ref.softmax_cross_entropy(e @ c.T, y, **more),
        INPUTS,
        types=HALF,
        gradients=("e", "c"),
        tolerance=4.0,
        because="gradients are summed in the type",
        seconds=400.0,
    )

COLLECTION = Collection(
    name="cut_cross_entropy",
    package="cut-cross-entropy",
    version="25.1.1",
    licence="Apple Sample Code License",
    needs="names no release",
    entries=T.entries(),
)
