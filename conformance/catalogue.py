"""All checks of the suite, level by level."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.kernels import FAMILIES
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS
from triton_porting_kit.errors import PortingKitError

MODULES: dict[str, tuple[str, ...]] = {
    "registration": (
        "registration.discovery",
        "registration.options",
        "registration.hashing",
        "registration.stages",
        "registration.cache",
        "registration.coexistence",
    ),
    "runtime": (
        "runtime.memory",
        "runtime.copies",
        "runtime.streams",
        "runtime.events",
        "runtime.modules",
        "runtime.device",
        "runtime.reset",
        "runtime.arguments",
        "runtime.structures",
        "runtime.counts",
        "runtime.specialization",
        "runtime.refusals",
        "runtime.grids",
        "runtime.launches",
        "runtime.process",
        "runtime.state",
        "runtime.hooks",
        "runtime.failures",
        "runtime.groups",
        "runtime.peers",
    ),
    "language": ("language.checks", "language.programs", "language.addresses", "language.products"),
    "kernels": tuple(f"kernels.{family}" for family in FAMILIES),
    "stress": ("stress.checks",),
    "torch": ("torch.opinfo", "torch.models", "torch.memory", "torch.streams"),
    "public": ("public.table",),
    "distributed": ("distributed.checks",),
}
"""By level, the modules of this package whose `CHECKS` form the level."""


class CatalogueError(PortingKitError):
    """Two checks have the same name, which is a defect of the suite."""


def checks(levels: Sequence[str] = DEFAULT_LEVELS, *, stress: int = 0, seed: int = 0) -> Iterator[Check]:
    """The checks of some levels, in order, for the release of Triton that is installed.

    `stress`: the number of random programs; 0: the mandatory ones. `seed`: the seed of the random programs.
    """
    seen: set[str] = set()
    for level in levels:
        for module in MODULES[level]:
            found = importlib.import_module(f"{__package__}.{module}")
            for check in found.programs(stress, seed) if level == "stress" else found.CHECKS:
                if check.name in seen:
                    raise CatalogueError(f"there are two checks named {check.name}")
                seen.add(check.name)
                yield check
