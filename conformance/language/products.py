"""Programs about products of matrices: a fixed selection of random programs that every port has to run.

The selection comes from the first 600 programs, without those that have tiles of more than 2,048 elements. It contains
every pair of constructs, and of entries of the tables in `conformance.stress.matrices`, that at least ten of these
programs have.
"""

from __future__ import annotations

from triton_porting_kit.conformance.stress.checks import Selected
from triton_porting_kit.conformance.stress.generator import PRODUCTS

NUMBERS = (
    10, 16, 22, 26, 31, 32, 33, 34, 39, 48, 50, 51, 72, 79, 90, 97, 101, 125, 127, 128, 139, 172, 193,
    208, 209, 213, 216, 222, 231, 233, 242, 247, 254, 255, 256, 283, 290, 297, 307, 335, 353, 376, 397,
    405, 416, 431, 440, 447, 482, 523, 553, 565, 588,
)  # fmt: skip

CHECKS = Selected("language/products", PRODUCTS, NUMBERS)
