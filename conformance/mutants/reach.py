"""The lines of the mutated sources that each unit executes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from triton_porting_kit.conformance.mutants.mutation import Mutation
from triton_porting_kit.errors import PortingKitError


class CoverageMissing(PortingKitError):
    """The library that records executed lines is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "mutants are tried on the checks that run their lines; `coverage`, which records these lines, is not "
            "installed: pip install 'triton-porting-kit[mutants]'"
        )


class ReachError(PortingKitError):
    """The file of recorded lines cannot be read."""


def check_coverage() -> None:
    """Raise `CoverageMissing` if `coverage` is not installed."""
    try:
        import coverage  # noqa: F401
    except ImportError:
        raise CoverageMissing from None


class Tracer:
    """A context manager that records executed lines in all threads of this process."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """`files`: maps paths in the file system to paths relative to the package."""
        self._files = files
        self._coverage: Any = None
        self._found: dict[str, list[int]] = {}

    def __enter__(self) -> Tracer:
        import coverage

        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, include=list(self._files), messages=False
        )
        self._coverage._warn_no_data = False
        self._coverage.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        self._found = {
            self._files[name]: sorted(data.lines(name) or ())
            for name in data.measured_files()
            if name in self._files
        }

    def lines(self) -> dict[str, list[int]]:
        """The executed lines, by path relative to the package."""
        return self._found


class Reach:
    """Which units execute which lines. `save` and `load` are inverse."""

    def __init__(self) -> None:
        self._sets: list[frozenset[int]] = []
        self._numbers: dict[frozenset[int], int] = {}
        self._units: dict[str, dict[str, int]] = {}
        """By unit name and file, the index of the set of lines in `_sets`."""
        self.seconds: dict[str, float] = {}
        """The run time of each unit, by name."""
        self.started: dict[str, list[int]] = {}
        """By file, the lines that run before any unit: while the kit is imported, opened and warmed up."""
        self.native: dict[str, dict[str, int]] = {}
        """For C++: by group of units and file, the index of the set of lines in `_sets`."""
        self.code: dict[str, list[int]] = {}
        """For C++: by file, the lines that have code."""
        self.failed: dict[str, str] = {}
        """Units that fail on the unmodified kit, and how. They cannot judge mutants."""

    def __contains__(self, unit: str) -> bool:
        return unit in self._units or unit in self.failed

    @property
    def units(self) -> list[str]:
        """Names of the units that passed."""
        return list(self._units)

    def add(self, unit: str, seconds: float, lines: Mapping[str, Iterable[int]]) -> None:
        self.seconds[unit] = seconds
        self._units[unit] = {path: self._number(frozenset(found)) for path, found in lines.items() if found}

    def _number(self, lines: frozenset[int]) -> int:
        if lines not in self._numbers:
            self._numbers[lines] = len(self._sets)
            self._sets.append(lines)
        return self._numbers[lines]

    def reaching(self, path: str, lines: Sequence[tuple[int, int]]) -> list[str]:
        """The units that execute a line of a file in one of these ranges; both ends are included."""
        hit = {
            number
            for number, found in enumerate(self._sets)
            if any(first <= line <= last for first, last in lines for line in found)
        }
        return [unit for unit, files in self._units.items() if files.get(path) in hit]

    def lines_set(self, unit: str, path: str) -> int:
        """An index that identifies the set of lines of a file that a unit executes; -1 if it executes none."""
        return self._units[unit].get(path, -1)

    def runs_at_start(self, mutation: Mutation) -> bool:
        """Whether its lines run before any unit."""
        first, last = mutation.lines
        return any(first <= line <= last for line in self.started.get(mutation.path, ()))

    def add_native(self, group: str, ran: Mapping[str, set[int]], there: Mapping[str, set[int]]) -> None:
        """Add the lines of C++ that a group of units executes. `there`: all lines with code."""
        self.native[group] = {path: self._number(frozenset(lines)) for path, lines in ran.items() if lines}
        for path, lines in there.items():
            self.code[path] = sorted({*self.code.get(path, ()), *lines})

    def groups_reaching(self, mutation: Mutation) -> set[str]:
        """For C++: the groups that execute its lines; all groups if its lines have no code, as constants do not."""
        first, last = mutation.lines
        if not any(first <= line <= last for line in self.code.get(mutation.path, ())):
            return set(self.native)
        hit = {n for n, lines in enumerate(self._sets) if any(first <= line <= last for line in lines)}
        return {group for group, files in self.native.items() if files.get(mutation.path) in hit}

    def native_lines(self, group: str, path: str) -> frozenset[int]:
        """For C++: the lines of a file that a group executes."""
        number = self.native.get(group, {}).get(path)
        return frozenset() if number is None else self._sets[number]

    def lines_of(self, path: str) -> set[int]:
        """The lines of a file that any unit executes."""
        found = set()
        for files in self._units.values():
            if path in files:
                found.add(files[path])
        return {line for number in found for line in self._sets[number]}

    # --- files ---------------------------------------------------------------------------------------

    def save(self, file: Path, about: str) -> None:
        """Write a file. `about`: a digest of the sources that the lines belong to."""
        content = {
            "about": about,
            "started": self.started,
            "seconds": self.seconds,
            "failed": self.failed,
            "native": self.native,
            "code": self.code,
            "sets": [sorted(lines) for lines in self._sets],
            "units": self._units,
        }
        part = file.with_suffix(".part")
        part.write_bytes(gzip.compress(json.dumps(content).encode(), 5))
        part.replace(file)

    @classmethod
    def load(cls, file: Path, about: str) -> Reach:
        """Read a file. Empty if it does not exist or belongs to other sources. Raises `ReachError`."""
        made = cls()
        if not file.is_file():
            return made
        try:
            content = json.loads(gzip.decompress(file.read_bytes()))
            if content["about"] != about:
                return made
            made.started, made.seconds = content["started"], content["seconds"]
            made.failed, made.native, made.code = content["failed"], content["native"], content["code"]
            made._sets = [frozenset(lines) for lines in content["sets"]]
            made._numbers = {lines: number for number, lines in enumerate(made._sets)}
            made._units = content["units"]
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            raise ReachError(
                f"{file} cannot be read ({error}); remove it, and the next run creates it again"
            ) from error
        return made
