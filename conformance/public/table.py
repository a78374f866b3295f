"""The table of collections, and their checks."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.public.checks import Body
from triton_porting_kit.conformance.public.entries import Collection, cases_of
from triton_porting_kit.errors import PortingKitError

NAMES = (
    "liger",
    "fla",
    "flag_gems",
    "conch",
    "torchao",
    "cut_cross_entropy",
    "sageattention",
    "adasplash",
    "mamba",
    "flash_attn",
    "moe_ops",
    "torchnorm",
    "trinix",
    "bitsandbytes",
    "xformers",
    "lightllm",
    "gemlite",
    "unsloth",
)
"""The modules of `collections`, each with a `COLLECTION`, in the order of the page."""


BUSY = 40.0
"""The factor for the time limit of a check by the clock, on a machine with other work. `patience` has a closer one."""


class UnknownCollection(PortingKitError):
    """There is no collection of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no collection {name!r}; there are {', '.join(NAMES)}")


@cache
def collection(name: str) -> Collection:
    """A collection by its name. Raises `UnknownCollection`."""
    if name not in NAMES:
        raise UnknownCollection(name)
    found: Collection = importlib.import_module(f"{__package__}.collections.{name}").COLLECTION
    return found


def collections() -> list[Collection]:
    """All of them, in order."""
    return [collection(name) for name in NAMES]


class _Checks:
    def __iter__(self) -> Iterator[Check]:
        for name in NAMES:
            for case in cases_of(collection(name)):
                direction = "gives the gradients" if case.gradient else "gives the results"
                yield Check(
                    case.name,
                    f"`{case.entry.name}` of {case.collection.package} {direction} of float64 on {case.type}.",
                    Body(case),
                    seconds=BUSY * case.entry.seconds,
                )


CHECKS = _Checks()
