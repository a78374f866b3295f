"""The order in which units of the suite are tried on a mutant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from triton_porting_kit.conformance.mutants.mutation import CPP, Mutation
from triton_porting_kit.conformance.mutants.reach import Reach
from triton_porting_kit.conformance.mutants.unit import CHECKS, PROGRAM, Unit


@dataclass(frozen=True)
class Candidates:
    """Names of units that may catch a mutant, the most likely first."""

    names: list[str]
    running: list[str]
    """Those known to execute the mutant's lines or, if these run at import only, a line that uses a name that they
    define."""


def candidates(
    mutation: Mutation, reach: Reach, uses: Mapping[str, Mapping[str, Sequence[int]]]
) -> Candidates:
    """The units to try on a mutation. `uses`: the lines that contain an identifier, by identifier and file."""
    if mutation.language == CPP:
        # Try the checks of the device first; they are short.
        groups = reach.groups_reaching(mutation)
        units = [unit for unit in reach.units if _unit(unit).group in groups]
        first = [unit for unit in units if unit.startswith("runtime/")]
        rest = [unit for unit in units if not unit.startswith("runtime/")]
        names = [*in_turn(first, reach), *in_turn(rest, reach)]
        return Candidates(names, names)
    found = reach.reaching(mutation.path, [mutation.lines])
    if found or not reach.runs_at_start(mutation):
        names = in_turn(found, reach, mutation.path)
        return Candidates(names, names)
    users: dict[str, None] = {}
    for name in mutation.names:
        for path, lines in uses.get(name, {}).items():
            users |= dict.fromkeys(reach.reaching(path, [(line, line) for line in lines]))
    running = in_turn(list(users), reach)
    return Candidates(
        [*running, *in_turn([unit for unit in reach.units if unit not in users], reach)], running
    )


def _unit(name: str) -> Unit:
    return Unit(PROGRAM if name.startswith(f"{PROGRAM}/") else CHECKS, name)


def in_turn(names: Sequence[str], reach: Reach, path: str = "") -> list[str]:
    """Alternate between two round-robin orders: over groups of units (such as the checks of one operation), and over
    sets of units that execute the same lines of a file. Within a round the cheapest unit is first.

    The first order finds faults of an operation early, the second finds faults on rare paths through the file.
    """
    orders = [_rounds(names, reach, lambda name: _unit(name).group)]
    if path:
        orders.append(_rounds(names, reach, lambda name: str(reach.lines_set(name, path))))
    return list(dict.fromkeys(name for pair in zip(*orders, strict=True) for name in pair))


def _rounds(names: Sequence[str], reach: Reach, group_of: Callable[[str], str]) -> list[str]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[group_of(name)].append(name)
    placed = [
        (number, reach.seconds[name], name)
        for members in groups.values()
        for number, name in enumerate(sorted(members, key=lambda name: (reach.seconds[name], name)))
    ]
    return [name for _, _, name in sorted(placed)]


def within(names: Sequence[str], reach: Reach, seconds: float) -> list[str]:
    """The first units that together take this many seconds on the unmodified kit; all if 0."""
    if not seconds:
        return list(names)
    found, left = [], seconds
    for name in names:
        if left <= 0:
            break
        found.append(name)
        left -= reach.seconds[name]
    return found
