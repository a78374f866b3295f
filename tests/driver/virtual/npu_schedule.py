"""The model of time of docs/npu.md once more, in exact numbers: step by step to the next moment at which anything
changes. Everything counts down; no events are scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from triton_porting_kit.chips import ChipDescription

WORK, LOAD, STORE, SHARED, PRODUCT, WAIT, ORDER = range(7)
Step = tuple[int, int, int, int]
"""What a core does: the kind, the unit, and two numbers (see `play` of npu_kernels.c)."""
_ROUTES = {LOAD: ("global", "vector"), STORE: ("vector", "global"), SHARED: ("shared", "vector")}


@dataclass
class Command:
    step: Step
    number: int
    needs: list[tuple[int, int]]
    setup: Fraction = Fraction(0)
    bytes: Fraction = Fraction(0)
    latency: Fraction = Fraction(0)


@dataclass
class Unit:
    waiting: list[Command] = field(default_factory=list)
    current: Command | None = None
    arriving: list[Command] = field(default_factory=list)
    needs: list[tuple[int, int]] = field(default_factory=list)
    issued: int = 0
    complete: int = 0


@dataclass
class Core:
    number: int
    steps: list[Step]
    units: dict[int, Unit] = field(default_factory=dict)
    busy: Fraction = Fraction(0)
    issuing: Command | None = None


class Schedule:
    """A launch of one program on each core."""

    def __init__(self, chip: ChipDescription, programs: Sequence[Sequence[Step]]) -> None:
        self.chip = chip
        self.cores = [Core(number, [*steps]) for number, steps in enumerate(programs)]
        for core in self.cores:
            core.units = {unit: Unit() for unit in range(1, len(chip.units))}

    def cycles(self) -> Fraction:
        """The time until everything is idle, without that of launching."""
        now = Fraction(0)
        while True:
            for core in self.cores:
                while self._settle(core):
                    pass
            rates = self._rates()
            left = [core.busy for core in self.cores]
            for core in self.cores:
                for unit in core.units.values():
                    left += [command.latency for command in unit.arriving]
                    if unit.current and unit.current.setup:
                        left.append(unit.current.setup)
            left += [command.bytes / rate for command, rate in rates]
            passed = min((time for time in left if time > 0), default=None)
            if passed is None:
                return now
            now += passed
            for command, rate in rates:
                command.bytes -= rate * passed
            for core in self.cores:
                core.busy = max(core.busy - passed, Fraction(0))
                for unit in core.units.values():
                    for command in unit.arriving:
                        command.latency = max(command.latency - passed, Fraction(0))
                    if unit.current and unit.current not in [command for command, _ in rates]:
                        unit.current.setup = max(unit.current.setup - passed, Fraction(0))

    def _settle(self, core: Core) -> bool:
        """Do one thing that takes no time. Returns whether there was one."""
        for unit in core.units.values():
            if unit.arriving and unit.arriving[0].latency == 0:
                unit.arriving.pop(0)
                unit.complete += 1
                return True
            if unit.current and not unit.current.setup and not unit.current.bytes:
                unit.arriving.append(unit.current)
                unit.current = None
                return True
            if not unit.current and unit.waiting:
                needs = unit.waiting[0].needs
                if all(core.units[other].complete >= token for other, token in needs):
                    unit.current = unit.waiting.pop(0)
                    return True
        return core.busy == 0 and self._go_on(core)

    def _go_on(self, core: Core) -> bool:
        if core.issuing:
            unit = core.units[core.issuing.step[1]]
            core.issuing.needs, unit.needs = unit.needs, []
            unit.waiting.append(core.issuing)
            core.issuing = None
            return True
        if not core.steps:
            return False
        kind, number, amount, token = core.steps[0]
        if kind == WORK:
            core.busy = Fraction(amount)
        elif kind == WAIT:
            if core.units[number].complete < token:
                return False
        elif kind == ORDER:
            if amount != number:  # a unit is in order anyway
                core.units[number].needs.append((amount, token))
        else:
            unit = core.units[number]
            engine = self.chip.channels[number - 2] if number > 1 else self.chip.matrix
            assert engine is not None
            if unit.issued - unit.complete >= engine.queue:
                return False
            unit.issued += 1
            core.issuing = self._command(core.steps[0], unit.issued)
            core.busy = Fraction(self.chip.core.issue_cycles)
        core.steps.pop(0)
        return True

    def _command(self, step: Step, number: int) -> Command:
        kind, unit, amount, _ = step
        if kind == PRODUCT:
            assert self.chip.matrix is not None
            product = self.chip.matrix.products[0]
            return Command(
                step, number, [], Fraction(self.chip.matrix.start_cycles + amount * product.cycles)
            )
        source = self.chip.memory(_ROUTES[kind][0])
        start = self.chip.channels[unit - 2].start_cycles
        return Command(step, number, [], Fraction(start), Fraction(amount), Fraction(source.latency))

    def _rates(self) -> list[tuple[Command, Fraction]]:
        """The rates of all transfers that move: each in turn gets the least of what its limits leave to it."""
        moving: list[tuple[Command, int, set[tuple[str, int]]]] = []
        for core in self.cores:
            for unit in core.units.values():
                if unit.current and not unit.current.setup and unit.current.bytes:
                    kind, number, _, _ = unit.current.step
                    limit = self.chip.channels[number - 2].bytes_per_cycle
                    moving.append((unit.current, limit, {self._place(name, core) for name in _ROUTES[kind]}))
        rates: list[tuple[Command, Fraction]] = []
        free = {
            place: Fraction(self.chip.memory(place[0]).bytes_per_cycle) for _, _, at in moving for place in at
        }
        while moving:
            shares = [
                min(
                    Fraction(limit),
                    *(free[place] / sum(place in other for _, _, other in moving) for place in at),
                )
                for _, limit, at in moving
            ]
            lowest = shares.index(min(shares))
            command, _, at = moving.pop(lowest)
            rates.append((command, shares[lowest]))
            for place in at:
                free[place] -= shares[lowest]
        return rates

    def _place(self, memory: str, core: Core) -> tuple[str, int]:
        scope = self.chip.memory(memory).scope.value
        return memory, {
            "chip": 0,
            "cluster": core.number // self.chip.cores_per_cluster,
            "core": core.number,
        }[scope]
