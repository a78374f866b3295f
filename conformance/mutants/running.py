"""Runs a unit in this process, on the session of a backend."""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from triton_porting_kit.conformance import catalogue
from triton_porting_kit.conformance.batches import try_checks
from triton_porting_kit.conformance.check import Check
from triton_porting_kit.conformance.context import Session
from triton_porting_kit.conformance.language import addresses, products
from triton_porting_kit.conformance.levels import DEFAULT_LEVELS
from triton_porting_kit.conformance.mutants.outcome import FAIL, PASS, Outcome
from triton_porting_kit.conformance.mutants.unit import CHECKS, PROGRAM, Unit
from triton_porting_kit.conformance.status import BAD
from triton_porting_kit.conformance.stress.checks import program_of_run
from triton_porting_kit.conformance.stress.generator import generate
from triton_porting_kit.conformance.stress.launching import Launch
from triton_porting_kit.conformance.stress.worker import outcome_of

_SELECTED = (addresses.CHECKS, products.CHECKS)
"""Random programs, which are generated one at a time."""
_PROGRAMS = "stress/programs/"


class Runner:
    """Finds the checks of the suite by name, and creates those of a level on first use."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def load(self, levels: Iterable[str] = DEFAULT_LEVELS) -> None:
        """Make the checks of some levels, but for random programs, which are made one at a time."""
        for level in levels:
            if level != "stress":
                for name in set(catalogue.MODULES[level]) - {"language.addresses", "language.products"}:
                    module = importlib.import_module(f"triton_porting_kit.conformance.{name}")
                    self._checks |= {check.name: check for check in module.CHECKS}

    def check(self, name: str) -> Check:
        if name.startswith(_PROGRAMS):
            return program_of_run(0, int(name.removeprefix(_PROGRAMS)))
        for selected in _SELECTED:
            if (check := selected.named(name)) is not None:
                return check
        if name not in self._checks:
            self.load([name.partition("/")[0]])
        return self._checks[name]

    def run(self, unit: Unit, session: Session, *, all_checks: bool = False) -> Outcome:
        """Run a unit. `all_checks`: continue after the first failure."""
        if unit.kind == CHECKS:
            return self._run_checks(unit, session, all_checks)
        assert unit.kind == PROGRAM
        return _run_program(unit, session)

    def _run_checks(self, unit: Unit, session: Session, all_checks: bool) -> Outcome:
        first, failed = Outcome(PASS), []
        for record in try_checks([self.check(name) for name in unit.checks], session):
            if record.status in BAD:
                failed.append(record.name)
                if len(failed) == 1:
                    first = Outcome(
                        FAIL, 0.0, record.name, record.stage, f"{record.status}: {record.message}"[:500]
                    )
                if not all_checks:
                    break
        return Outcome(first.kind, 0.0, first.check, first.stage, first.message, tuple(failed))


def _run_program(unit: Unit, session: Session) -> Outcome:
    cache = Path(os.environ["TRITON_CACHE_DIR"]) / str(unit.seed)
    os.environ["TRITON_CACHE_DIR"] = str(cache)  # a process runs one unit
    found = outcome_of(Launch.of(generate(unit.seed)), session.memory, {})
    code = hashlib.sha256()
    for path in sorted(cache.rglob("*.obj"), key=lambda path: path.name):
        code.update(path.read_bytes())
    shutil.rmtree(cache, ignore_errors=True)
    if found.failed:
        return Outcome(FAIL, 0.0, unit.name, found.detail, str(found)[:500])
    return Outcome(PASS, code=code.hexdigest()[:16])
