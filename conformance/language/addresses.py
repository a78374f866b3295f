"""Programs about addresses, masks and pointers: a fixed choice of the random ones, which every port has to run.

The choice has, at least twice, every pair of `conformance.stress.features` that five of the first 1,500 programs have.
"""

from __future__ import annotations

from collections.abc import Iterator

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.stress.checks import check_of
from triton_porting_kit.conformance.stress.generator import ADDRESSES

NUMBERS = (
    3, 11, 14, 18, 19, 29, 32, 42, 43, 45, 58, 60, 85, 94, 110, 119, 131, 134,
    148, 149, 152, 159, 181, 192, 229, 235, 238, 240, 241, 246, 250, 252, 273, 276, 293, 299,
    323, 326, 334, 344, 353, 354, 379, 395, 397, 399, 403, 406, 407, 408, 415, 418, 429, 447,
    468, 489, 515, 517, 549, 555, 572, 578, 602, 619, 620, 639, 643, 697, 705, 721, 774, 786,
    806, 810, 826, 838, 869, 957, 963, 973, 1007, 1026, 1028, 1072, 1127, 1205, 1215, 1225, 1257, 1305,
    1314, 1373, 1448, 1493,
)  # fmt: skip


SEEDS = tuple(ADDRESSES + number for number in NUMBERS)


class _Checks:
    """Made when they are looked at: every program has to be generated."""

    def __iter__(self) -> Iterator[Check]:
        return (check_of(ADDRESSES + n, f"language/addresses/{n:04}") for n in NUMBERS)


CHECKS = _Checks()
