"""The plan of a run: the checks of its levels that apply to the backend, are selected and belong to its shard."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.execution.selection import select
from triton_porting_kit.conformance.execution.settings import Settings
from triton_porting_kit.conformance.execution.shards import Shard, share
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS, LEVELS
from triton_porting_kit.conformance.torch import support
from triton_porting_kit.errors import PortingKitError


class PlanError(PortingKitError):
    """A run would have no checks, or requests an unknown level."""


@dataclass(frozen=True)
class Plan:
    """The checks of a run, in order."""

    checks: tuple[Check, ...]
    not_applicable: tuple[str, ...]
    """Names of checks that do not apply to this backend: those of the kit's device, or those that run kernels."""


def load_checks(settings: Settings, levels: Sequence[str]) -> list[Check]:
    """All checks of some levels."""
    module = importlib.import_module(settings.catalogue)
    return list(module.checks(levels, stress=settings.stress, seed=settings.seed))


def make_plan(
    settings: Settings,
    levels: Sequence[str] = (),
    selections: Sequence[str] = (),
    shard: Shard | None = None,
    description: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan a run. Raises `PlanError`.

    `levels`: all if empty. `description`: a worker's description of the session; without it, every check applies.
    """
    unknown = [level for level in levels if level not in LEVELS]
    if unknown:
        raise PlanError(f"there is no level {unknown[0]!r}; there are {', '.join(LEVELS)}")
    ordered = [level for level in LEVELS if level in (levels or DEFAULT_LEVELS)]
    checks = load_checks(settings, ordered)
    if not checks:
        raise PlanError(f"the suite has no checks of {', '.join(ordered)}")
    chosen = select(checks, selections) if selections else checks
    if not chosen:
        raise PlanError(
            f"no check of {', '.join(ordered)} is selected by {' or '.join(map(repr, selections))}; "
            "`tpk conform --list` shows their names"
        )
    fitting = [check for check in chosen if applies(check, settings, description)]
    if not fitting:
        raise PlanError(
            f"none of the {len(chosen)} selected checks applies to this backend with these options"
        )
    idle = tuple(check.name for check in chosen if not applies(check, settings, description))
    mine = share(fitting, shard) if shard else fitting
    if not mine:
        raise PlanError(f"shard {shard} has no check: there are fewer checks than shards")
    return Plan(tuple(mine), idle)


def applies(check: Check, settings: Settings, description: Mapping[str, Any] | None) -> bool:
    """Whether a check applies to the backend with these settings."""
    if settings.target:
        return check.compiles and not check.kit_device
    if check.torch and description is not None:
        return support.applies_to(check.torch, check.needs, description)
    return not check.kit_device or description is None or bool(description["kit_device"])


def batches(checks: Sequence[Check]) -> list[list[Check]]:
    """Group checks that are sent to a worker together: consecutive checks of a batch; each of the others alone."""
    found: list[list[Check]] = []
    for check in checks:
        if found and check.batch and check.batch == found[-1][-1].batch:
            found[-1].append(check)
        else:
            found.append([check])
    return found
