"""Programs about products of matrices: a fixed selection of random programs that every port has to run.

Take those of the first 600 programs whose tiles have at most 2,048 elements, and every pair of constructs, and of
entries of the tables in `conformance.stress.matrices`, that at least ten of them have. The selection contains each of
these pairs.
"""

from __future__ import annotations

from triton_porting_kit.conformance.stress.checks import Selected
from triton_porting_kit.conformance.stress.generator import PRODUCTS

NUMBERS = (
    10, 18, 22, 27, 36, 39, 40, 64, 75, 80, 82, 90, 96, 100, 101, 117, 124, 125, 136, 168, 174, 194,
    202, 207, 209, 214, 219, 231, 236, 242, 247, 254, 255, 272, 300, 317, 352, 355, 358, 374, 386, 405,
    408, 421, 427, 435, 454, 467, 475, 480, 482, 484, 504, 526, 576, 579, 592,
)  # fmt: skip

CHECKS = Selected("language/products", PRODUCTS, NUMBERS)
