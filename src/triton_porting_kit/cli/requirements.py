"""The tested releases of the kit's dependencies, read from its package metadata."""

from __future__ import annotations

import re
from importlib import metadata

TORCH = "2.13.0"
"""The tested release of torch."""

_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)\s*([^;]*)")
_CLAUSE = re.compile(r"(>=|<=|==|!=|~=|<|>)\s*([0-9][0-9a-zA-Z.*+!-]*)")


def tried_range(distribution: str) -> str:
    """The version range of a dependency, such as ``<3.10,>=3.9.0``; empty if there is none."""
    for requirement in metadata.requires("triton-porting-kit") or ():
        if (found := _REQUIREMENT.match(requirement)) and _same(found[1], distribution):
            return found[2].strip()
    return ""


def within(version: str, specifier: str) -> bool:
    """Whether a release lies in a range of ``>=``, ``<``, ``<=`` and ``>`` clauses. Other clauses are ignored."""
    release = numbers(version)
    for operator, bound_text in _CLAUSE.findall(specifier):
        bound = numbers(bound_text)
        width = max(len(release), len(bound))
        ours, theirs = (n + (0,) * (width - len(n)) for n in (release, bound))
        fits = {">=": ours >= theirs, "<": ours < theirs, "<=": ours <= theirs, ">": ours > theirs}
        if not fits.get(operator, True):
            return False
    return True


def numbers(version: str) -> tuple[int, ...]:
    """The numeric release of a version: ``3.9.0+git`` is (3, 9, 0)."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _same(a: str, b: str) -> bool:
    return re.sub(r"[-_.]+", "-", a).lower() == re.sub(r"[-_.]+", "-", b).lower()
