"""How far the results of whole kernels may be from float64, and why: one table.

A result may be off by the rounding to its own type, and by what the arithmetic before that loses: so many roundings of
the working type (fp64 for fp64, else fp32), each half a unit in the last place of the element's *scale*. The scale is
derived from the operands beside each oracle: for a sum, the sum of the magnitudes of its terms. Nothing is allowed that
no entry gives a reason for.

``python -m triton_porting_kit.conformance.tolerances`` writes the table into docs/conformance-kernels.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from triton_porting_kit.conformance.rounding import last_place
from triton_porting_kit.conformance.types import KINDS, Array, Kind

LAMBDA = 4.0
"""Roundings of a sum of n terms are as often up as down. Were each as large as it can be, they would come to more than
4 √n units in one of 1,500 sums; as they are, 4 √n is seven standard deviations. Nor can they come to more than n, in
whichever order the terms are added."""


@dataclass(frozen=True)
class Tolerance:
    """What the results of one kernel may lose."""

    reason: str
    ulp: float = 0.5
    """Units in the last place of the result's own type: a half where it is rounded once."""
    roundings: float = 0.0
    """Of the working type, of the scale, whatever the shape."""
    sums: float = 0.0
    """How many sums over the kernel's terms enter; each loses `lost` units."""
    precision: int = 0
    """Bits of the working type; 0: 53 for fp64, else 24."""
    flushes: bool = False
    """Whether results and intermediates below the normal numbers of the working type may be 0."""

    def bits(self, kind: Kind) -> int:
        """Precision of the working type where results are of `kind`."""
        return self.precision or (53 if kind.name == "fp64" else 24)

    def allowed(
        self, expected: Array, kind: Kind, scale: Array | float | None = None, terms: int = 1
    ) -> Array:
        """The absolute error that each element may have. `scale`: by default the result's magnitude."""
        magnitude = np.minimum(np.abs(np.asarray(expected, np.float64)), kind.largest)
        with np.errstate(all="ignore"):
            own = self.ulp * last_place(magnitude, kind)
            count = self.roundings + self.sums * lost(terms)
            work = count * 2.0 ** -self.bits(kind) * (magnitude if scale is None else np.asarray(scale))
            floor = KINDS["fp64" if kind.name == "fp64" else "fp32"].lowest_exponent if self.flushes else None
            return np.asarray(own + work + (0.0 if floor is None else 2.0**floor))

    def rule(self, kind: Kind, terms: int = 1) -> str:
        """What is allowed, for people."""
        count = self.roundings + self.sums * lost(terms)
        parts = [f"{self.ulp:g} ulp of {kind}"] if self.ulp else []
        if count:
            parts.append(f"{count:.3g} x 2^-{self.bits(kind)} of the scale")
        return " and ".join(parts) or "identical"


def lost(terms: int) -> float:
    """Units that a sum of so many terms may lose, relative to the sum of their magnitudes."""
    return float(min(terms, LAMBDA * np.sqrt(terms)))


_SUM = "a sum of n terms loses at most min(n, 4 √n) roundings in whichever order it is made"
_EXP = "GPUs' fast exponential is 2 units off and takes x / ln 2 rounded, off by |x| units"

TABLE: dict[str, Tolerance] = {
    "vector_add": Tolerance("one addition, rounded once, denormals kept"),
    "gelu": Tolerance(
        "erf, 1 + erf and two products lose a unit each of their largest value, 8 as fast erf is 4 units off",
        roundings=8,
        flushes=True,
    ),
    "swiglu": Tolerance(
        f"{_EXP}: 16 covers gates up to 12; sum, quotient (2 units where it is fast) and product one each",
        roundings=20,
        flushes=True,
    ),
    "softmax": Tolerance(
        f"x - max loses as many units as it has, up to 30; {_EXP}; a quotient, 2 where it is fast; {_SUM}",
        roundings=64,
        sums=1,
        flushes=True,
    ),
    "layer_norm": Tolerance(
        f"mean, variance and bias: {_SUM}; the scale holds the mean's part, which shifts a row",
        roundings=8,
        sums=1,
    ),
    "layer_norm_statistics": Tolerance(f"{_SUM}; square root and quotient 2 units each", roundings=6, sums=1),
    "layer_norm_backward": Tolerance(
        f"three terms that cancel, and two means: {_SUM}; each has its part of the scale",
        roundings=16,
        sums=1,
    ),
    "rms_norm": Tolerance(f"{_SUM}; square root, quotient and products", roundings=8, sums=1),
    "matmul": Tolerance(f"{_SUM}; epilogues another 2", roundings=4, sums=1),
    "matmul_fp8": Tolerance(
        "Matrix units of some chips add products of 8-bit floats with 14 bits before they reach an fp32 accumulator; "
        "of the largest product a step keeps 2^-13, and steps' errors lean one way",
        roundings=2,
        sums=0.25,
        precision=13,
    ),
    "matmul_tf32": Tolerance(
        "tf32 keeps 11 bits of each operand (some chips cut off: a whole unit), two to a product",
        roundings=2,
        precision=10,
    ),
    "matmul_quantised": Tolerance("an exact integer sum, converted, and two products", roundings=4),
    "attention": Tolerance(
        f"an exponential has the rounding errors of a score and its size, which the scale holds; {_SUM}; running "
        "sums are scaled again at every block. Weights that are rounded to the type of the operands come on top: half "
        "a unit each, which a sum of n of them holds to 4 / √n of it",
        roundings=16,
        sums=1,
        flushes=True,
    ),
    "dropout": Tolerance("1 - p, and a quotient (2 units where it is fast)", roundings=4),
    "cross_entropy": Tolerance(
        f"the gradient as softmax; the loss is a logarithm and two differences of numbers up to the scale; {_SUM}",
        roundings=64,
        sums=1,
    ),
    "giou_loss": Tolerance(
        "areas are off by 3 units, the union by 8, quotients by 2; both by 28 in all, of a scale of 3; and a mean",
        roundings=12,
        sums=1,
    ),
    "rotary": Tolerance("two products and a sum, of the products' magnitudes", roundings=3),
    "prefix_sum": Tolerance(f"{_SUM}; the scale is the running sum of magnitudes", roundings=1, sums=1),
    "reduction": Tolerance(f"{_SUM}", roundings=1, sums=1),
    "exact": Tolerance(
        "integers, and values that are moved, compared or counted, never computed with", ulp=0
    ),
}
"""By kernel. Where results are integers, or of `ulp` 0 and no roundings, they are identical or wrong."""


def document() -> str:
    """The table in Markdown."""
    lines = [
        "| kernel | ulp of the result | roundings of the working type | bits | small results | because |",
        "|---|---|---|---|---|---|",
    ]
    for name, entry in TABLE.items():
        count = " + ".join(
            [f"{entry.roundings:g}"] * (entry.roundings > 0)
            + [f"{entry.sums:g} min(n, 4 √n)"] * (entry.sums > 0)
        )
        bits = str(entry.precision or "24, fp64: 53") if count else ""
        small = "may be 0" if entry.flushes else ""
        lines.append(f"| {name} | {entry.ulp:g} | {count or '0'} | {bits} | {small} | {entry.reason} |")
    return "\n".join(lines) + "\n"


def main(path: str = "docs/conformance-kernels.md") -> None:
    """Put the table in place of the one that a page has."""
    page = Path(path)
    head, _, rest = page.read_text(encoding="utf-8").partition("| kernel |")
    page.write_text(head + document() + "\n" + rest.partition("\n\n")[2], encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
