"""Programs about products of matrices: a fixed selection of random programs that every port has to run.

Take every pair of constructs, and of entries of the tables in `conformance.stress.matrices`, that occurs in at least
ten of the first 600 programs. The selection contains each of these pairs.
"""

from __future__ import annotations

from triton_porting_kit.conformance.stress.checks import Selected
from triton_porting_kit.conformance.stress.generator import PRODUCTS

NUMBERS = (
    7, 17, 18, 20, 21, 25, 34, 39, 46, 66, 68, 71, 72, 73, 74, 86, 89, 90, 97, 112, 114, 119, 140, 142, 151,
    152, 154, 189, 190, 191, 195, 234, 235, 243, 249, 259, 299, 300, 305, 311, 332, 336, 370, 384, 389, 390,
    395, 398, 464, 467, 489, 492, 494, 517, 518, 520, 556, 571, 592,
)  # fmt: skip

CHECKS = Selected("language/products", PRODUCTS, NUMBERS)
