"""In which order the units of the suite are tried on a mutant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from triton_porting_kit.conformance.mutants.mutation import CPP, Mutation
from triton_porting_kit.conformance.mutants.reach import Reach
from triton_porting_kit.conformance.mutants.unit import CHECKS, PROGRAM, Unit


@dataclass(frozen=True)
class Candidates:
    """Names of units that may notice a mutant, the most likely first."""

    names: list[str]
    running: list[str]
    """Those of them that are known to run it: its lines, or (where these run at the start only) a line that uses what
    they give a value to."""


def candidates(
    mutation: Mutation, reach: Reach, uses: Mapping[str, Mapping[str, Sequence[int]]]
) -> Candidates:
    """`uses`: by identifier and file, the lines that it stands in."""
    if mutation.language == CPP:
        # Checks of the device first, which are short.
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
    """In turn of two orders: one unit of each group (checks of one operation), the next of each, and so on; and the
    same of units that run the same lines of a file. Within a round the cheapest are first.

    The first finds what is wrong with an operation, the second a rare path through the file.
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
    """The first of them that take so many seconds together on the kit as it is; all if 0."""
    if not seconds:
        return list(names)
    found, left = [], seconds
    for name in names:
        if left <= 0:
            break
        found.append(name)
        left -= reach.seconds[name]
    return found
