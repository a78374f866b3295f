"""The tolerances of whole kernels relative to float64, with reasons.

A result may differ by the rounding to its own type, and by a number of roundings of the working type (fp64 for fp64,
else fp32) before that, each half a unit in the last place of the element's *scale*. Each oracle derives the scale from
the operands: for a sum, it is the sum of the magnitudes of its terms.

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
"""The roundings of a sum of n terms go up as often as down. If each were as large as possible, their sum would exceed 4
√n units in one of 1,500 sums; with real roundings, 4 √n is seven standard deviations. Their sum never exceeds n units,
in any order of addition."""


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of one kernel's results."""

    reason: str
    ulp: float = 0.5
    """Units in the last place of the result's own type: a half if it is rounded once."""
    roundings: float = 0.0
    """Roundings of the working type, relative to the scale, for every shape."""
    sums: float = 0.0
    """The number of sums over the kernel's terms; each loses `lost` units."""
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
        """The allowed absolute error of each element. `scale` defaults to the result's magnitude."""
        magnitude = np.minimum(np.abs(np.asarray(expected, np.float64)), kind.largest)
        with np.errstate(all="ignore"):
            own = self.ulp * last_place(magnitude, kind)
            count = self.roundings + self.sums * lost(terms)
            work = count * 2.0 ** -self.bits(kind) * (magnitude if scale is None else np.asarray(scale))
            floor = KINDS["fp64" if kind.name == "fp64" else "fp32"].lowest_exponent if self.flushes else None
            return np.asarray(own + work + (0.0 if floor is None else 2.0**floor))

    def rule(self, kind: Kind, terms: int = 1) -> str:
        """The tolerance as text."""
        count = self.roundings + self.sums * lost(terms)
        parts = [f"{self.ulp:g} ulp of {kind}"] if self.ulp else []
        if count:
            parts.append(f"{count:.3g} x 2^-{self.bits(kind)} of the scale")
        return " and ".join(parts) or "identical"


def lost(terms: int) -> float:
    """The units that a sum of `terms` terms may lose, relative to the sum of their magnitudes."""
    return float(min(terms, LAMBDA * np.sqrt(terms)))


_SUM = "a sum of n terms loses at most min(n, 4 √n) roundings in any order"
_EXP = "a GPU's fast exponential has an error of 2 units, plus |x| units from rounding x / ln 2"

TABLE: dict[str, Tolerance] = {
    "vector_add": Tolerance("one addition, rounded once, denormals kept"),
    "gelu": Tolerance(
        "scaling, shifting, erf, 1 + erf and two products lose one unit each; 10, because fast erf loses 4 units",
        roundings=10,
        flushes=True,
    ),
    "swiglu": Tolerance(
        f"{_EXP}: 16 covers gates up to 12; sum, quotient (2 units if fast) and product lose one each",
        roundings=20,
        flushes=True,
    ),
    "softmax": Tolerance(
        f"x - max loses as many units as its value, up to 30; {_EXP}; a quotient, 2 units if fast; {_SUM}",
        roundings=64,
        sums=1,
        flushes=True,
    ),
    "layer_norm": Tolerance(
        f"mean, variance and bias: {_SUM}; the scale includes the mean, which shifts a row",
        roundings=8,
        sums=1,
    ),
    "layer_norm_statistics": Tolerance(
        f"{_SUM}; square root and quotient lose 2 units each", roundings=6, sums=1
    ),
    "layer_norm_backward": Tolerance(
        f"three terms that cancel, and two means: {_SUM}; the scale includes each",
        roundings=16,
        sums=1,
    ),
    "rms_norm": Tolerance(f"{_SUM}; square root, quotient and products", roundings=8, sums=1),
    "matmul": Tolerance(f"{_SUM}; epilogues lose 2 more", roundings=4, sums=1),
    "matmul_fp8": Tolerance(
        "some matrix units add products of 8-bit floats with 14 bits before the fp32 accumulator: a step keeps 2^-13 "
        "of the largest product, and the errors of steps are biased",
        roundings=2,
        sums=0.25,
        precision=13,
    ),
    "matmul_tf32": Tolerance(
        "tf32 keeps 11 bits of each of a product's two operands; some chips truncate, which loses a whole unit",
        roundings=2,
        precision=10,
    ),
    "matmul_quantised": Tolerance("an exact integer sum, converted, and two products", roundings=4),
    "attention": Tolerance(
        f"an exponential has the rounding errors of a score and its magnitude, which the scale includes; {_SUM}; "
        "running sums are rescaled at every block. Rounding weights to the type of the operands adds half a unit "
        "of which a sum of n weights keeps 4 / √n",
        roundings=16,
        sums=1,
        flushes=True,
    ),
    "dropout": Tolerance("1 - p, and a quotient (2 units if fast)", roundings=4),
    "cross_entropy": Tolerance(
        f"the gradient as for softmax; the loss is a logarithm and two differences of numbers up to the scale; {_SUM}",
        roundings=64,
        sums=1,
    ),
    "giou_loss": Tolerance(
        "areas lose 3 units, the union 8, quotients 2; both quotients lose 28 in total, of a scale of 3; and a mean",
        roundings=12,
        sums=1,
    ),
    "rotary": Tolerance("two products and a sum, relative to the products' magnitudes", roundings=3),
    "prefix_sum": Tolerance(f"{_SUM}; the scale is the running sum of magnitudes", roundings=1, sums=1),
    "reduction": Tolerance(f"{_SUM}", roundings=1, sums=1),
    "exact": Tolerance("integers, and values that are moved, compared or counted without arithmetic", ulp=0),
}
"""The tolerances by kernel. Integers, and results with `ulp` 0 and no roundings, must be identical."""


def document() -> str:
    """The table in Markdown."""
    lines = [
        "| kernel | ulp of the result | roundings of the working type | bits | small results | reason |",
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
    """Replace the table in a page."""
    page = Path(path)
    head, _, rest = page.read_text(encoding="utf-8").partition("| kernel |")
    page.write_text(head + document() + "\n" + rest.partition("\n\n")[2], encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
