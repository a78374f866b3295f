"""Programs about addresses, masks and pointers: a fixed choice of the random ones, which every port has to run.

The choice has, at least twice, every pair of `conformance.stress.features` that five of the first 1,500 programs have.
"""

from __future__ import annotations

from collections.abc import Iterator

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.stress.checks import check_of
from triton_porting_kit.conformance.stress.generator import ADDRESSES

NUMBERS = (
    11, 24, 29, 32, 43, 58, 60, 93, 94, 108, 110, 114, 119, 134, 148, 149, 152, 159,
    181, 184, 192, 217, 242, 257, 276, 293, 321, 325, 326, 334, 379, 388, 395, 397, 403, 407,
    408, 418, 447, 489, 515, 517, 549, 580, 615, 620, 626, 639, 675, 697, 721, 749, 756, 762,
    774, 786, 810, 818, 824, 826, 829, 869, 942, 963, 984, 1028, 1072, 1095, 1099, 1130, 1201, 1221,
    1226, 1305, 1373, 1448, 1454, 1455, 1493,
)  # fmt: skip


SEEDS = tuple(ADDRESSES + number for number in NUMBERS)


class _Checks:
    """Made when they are looked at: every program has to be generated."""

    def __iter__(self) -> Iterator[Check]:
        return (check_of(ADDRESSES + n, f"language/addresses/{n:04}") for n in NUMBERS)


CHECKS = _Checks()
