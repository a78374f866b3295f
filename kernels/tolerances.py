"""The allowed errors of kernels relative to the float64 reference, with reasons, as one table.

The allowed error of each element is atol + rtol * |reference|. Kernels compute in float32 and round once to the type
of the output, so a tolerance is the error of the float32 arithmetic (by kernel) plus one rounding (by type).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Tolerance:
    """The allowed relative and absolute error of each element."""

    rtol: float
    atol: float
    reason: str = ""

    def allowed(self, reference: NDArray[np.float64]) -> NDArray[np.float64]:
        """The allowed error of each element."""
        return self.atol + self.rtol * np.abs(reference)

    def __str__(self) -> str:
        return " + ".join(
            text
            for value, text in ((self.atol, f"{self.atol:.1e}"), (self.rtol, f"{self.rtol:.1e}·|r|"))
            if value > 1e-30
        )


#: Half a unit in the last place, and half the smallest subnormal.
ROUNDING = {
    "float32": Tolerance(2**-24, 2**-150, "24 significant bits"),
    "float16": Tolerance(2**-11, 2**-25, "11 significant bits, subnormals from 2^-24"),
    "bfloat16": Tolerance(2**-8, 2**-134, "8 significant bits"),
}

#: The error of float32 arithmetic. For kernels with long sums, atol is per term.
ARITHMETIC = {
    "vector_add": Tolerance(
        2**-45, 0.0, "one addition, rounded once; the rest is the error of the reference"
    ),
    "softmax": Tolerance(
        2**-18,
        2**-126,
        "x - max up to 32 keeps 2^-19 of its exponential; exp, sum and quotient a few 2^-24; "
        "results below the normal range may be flushed to 0",
    ),
    "matmul": Tolerance(
        2**-24,
        2**-22,
        "per term: partial sums of K products of standard normals grow as sqrt(K) and are rounded K times, "
        "0.2 K 2^-23 as standard deviation, of which ten are allowed; tf32 would be off by 2^-11 sqrt(K)",
    ),
    "giou_loss": Tolerance(
        2**-20, 2**-20, "differences of corners are exact to 2^-24; a dozen operations, then a mean below 2"
    ),
    "layer_norm": Tolerance(
        2**-20, 2**-18, "the mean of values up to 16 is off by some 2^-20, and shifts a whole row"
    ),
    "layer_norm_dx": Tolerance(
        2**-18, 2**-19, "three terms that cancel; per unit of 1 / deviation, which multiplies the difference"
    ),
    "layer_norm_sums": Tolerance(2**-19, 2**-20, "per row: each term is off by some 2^-21"),
    "gelu_residual": Tolerance(
        2**-20, 2**-19, "a few roundings of terms up to 16, and erf to a few units in the last place"
    ),
    "cumulative_sum": Tolerance(2**-24, 2**-22, "per term: as partial sums of `matmul`"),
    "attention": Tolerance(
        2**-18,
        2**-17,
        "scores of 64 products up to 8 keep 2^-18 of their exponentials; times the error of 16-bit weights",
    ),
    "dropout": Tolerance(2**-22, 0.0, "1 - p and the quotient, rounded once each"),
}

#: The tolerance of results without rounding.
EXACT = Tolerance(0.0, 0.0, "nothing is rounded")


def tolerance(kernel: str, dtype: str, terms: float = 1) -> Tolerance:
    """The tolerance for results of `dtype`. `terms` multiplies the absolute error of the arithmetic."""
    arithmetic, rounding = ARITHMETIC[kernel], ROUNDING[dtype]
    return Tolerance(
        arithmetic.rtol + rounding.rtol,
        arithmetic.atol * terms + rounding.atol,
        f"{arithmetic.reason}; {rounding.reason}",
    )
