"""What the units of a simulated chip did: the file that ``VNPU_TRACE`` names, read and summed up by kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from triton_porting_kit.chips.description import FIRST_CHANNEL
from triton_porting_kit.errors import TraceError

CORE, MATRIX = 0, 1


@dataclass(frozen=True)
class Interval:
    """A command of a unit, or work of a core. Cycles count from the start of the launch."""

    core: int
    unit: int
    line: int
    """The kernel's line; 0 if it is not known."""
    start: float
    end: float
    bytes: float
    """That a transfer moved."""
    source: int
    target: int
    """The memories of a transfer, by index."""


@dataclass(frozen=True)
class UnitTotals:
    """What one unit of one core did in a launch. All but the first two are cycles."""

    commands: float
    bytes: float
    busy: float
    ordered: float
    """Its next command waited for another unit."""
    waited: float
    """The core waited for its commands; of the core: for room in a queue."""


@dataclass
class Launch:
    """A launch. `moved` are bytes by memory; `needed`: bytes of global memory if each were moved once."""

    kernel: str
    programs: int
    start: int
    """Nanoseconds of the chip's clock."""
    cycles: float
    cut: bool
    """Whether there were more commands than the trace takes."""
    units: dict[tuple[int, int], UnitTotals] = field(default_factory=dict)
    """By core and unit."""
    moved: dict[int, float] = field(default_factory=dict)
    needed: float = 0.0
    intervals: list[Interval] = field(default_factory=list)

    def busy(self, units: Iterable[int]) -> float:
        """Cycles that these units were busy, summed over the cores."""
        wanted = {*units}
        return sum(totals.busy for (_, unit), totals in self.units.items() if unit in wanted)


@dataclass
class Trace:
    """The launches of a chip, in order."""

    chip: str
    megahertz: float
    cores: int
    units: tuple[str, ...]
    memories: tuple[str, ...] = ()
    bytes_per_cycle: tuple[float, ...] = ()
    """Of all instances of each memory."""
    launches: list[Launch] = field(default_factory=list)

    @property
    def channels(self) -> range:
        """The units that are DMA channels."""
        return range(FIRST_CHANNEL, len(self.units))


@dataclass(frozen=True)
class KernelTotals:
    """The launches of a kernel. Shares are of what the chip could have done in that time, from 0 to 1."""

    kernel: str
    launches: int
    milliseconds: float
    matrix: float
    core: float
    dma: float
    """Of the busiest channel."""
    global_bytes: float
    needed_bytes: float
    """Of global memory, if each were moved once to be read, and once to be written."""
    bandwidth: float
    """Of global memory."""
    overlap: float
    """Of the time that transfers or computation took, whichever is less, the part in which both were under way."""
    stall: str
    """The unit for which cores waited longest; empty if they did not wait."""
    stalled: float
    """The share of the time that they did."""
    intensity: float
    """Busy cycles of the matrix unit, or else of the core, for each byte of global memory; 0 without bytes."""


def read(path: Path) -> Trace:
    """The trace in a file: that of the last chip that wrote to it. Raises `TraceError`, and `OSError`."""
    return parse(path.read_text().splitlines(), str(path))


def parse(lines: Iterable[str], file: str = "<trace>") -> Trace:
    """The trace in these lines. Raises `TraceError`."""
    trace: Trace | None = None
    for number, line in enumerate(lines, 1):
        word, *values = line.split(" ")
        try:
            if word == "chip":
                trace = _chip(values)
            elif trace is None:
                raise ValueError("the first line has to name the chip")
            else:
                _add(trace, word, values)
        except (ValueError, IndexError) as error:
            raise TraceError(f"{file}:{number}: {line[:80]!r} is no line of a trace: {error}") from None
    if trace is None:
        raise TraceError(f"{file}: it is empty: no chip with a description has run")
    return trace


def _chip(values: list[str]) -> Trace:
    name, megahertz, cores, units = values
    named = ("core", "matrix", *(f"dma{channel}" for channel in range(int(units) - FIRST_CHANNEL)))
    return Trace(name, float(megahertz), int(cores), named)


def _add(trace: Trace, word: str, values: list[str]) -> None:
    if word == "memory":
        trace.memories += (values[0],)
        trace.bytes_per_cycle += (float(values[1]),)
    elif word == "launch":
        kernel, programs, start, cycles, cut = values
        trace.launches.append(Launch(kernel, int(programs), int(start), float(cycles), cut == "1"))
    elif word == "unit":
        commands, moved, busy, ordered, waited = map(float, values[2:])
        totals = UnitTotals(commands, moved, busy, ordered, waited)
        trace.launches[-1].units[int(values[0]), int(values[1])] = totals
    elif word == "moved":
        trace.launches[-1].moved[int(values[0])] = float(values[1])
    elif word == "needed":
        trace.launches[-1].needed = float(values[0])
    elif word == "did":
        core, unit, line, start, end, size, source, target = values
        trace.launches[-1].intervals.append(
            Interval(
                int(core),
                int(unit),
                int(line),
                float(start),
                float(end),
                float(size),
                int(source),
                int(target),
            )
        )
    else:
        raise ValueError(f"unknown word {word!r}")


def by_kernel(trace: Trace) -> list[KernelTotals]:
    """The totals of each kernel, the one that took longest first."""
    kernels: dict[str, list[Launch]] = {}
    for launch in trace.launches:
        kernels.setdefault(launch.kernel, []).append(launch)
    totals = [_totals(trace, kernel, launches) for kernel, launches in kernels.items()]
    return sorted(totals, key=lambda each: -each.milliseconds)


def _totals(trace: Trace, kernel: str, launches: list[Launch]) -> KernelTotals:
    cycles = sum(launch.cycles for launch in launches)
    possible = cycles * trace.cores
    matrix = sum(launch.busy([MATRIX]) for launch in launches)
    core = sum(launch.busy([CORE]) for launch in launches)
    dma = max((sum(launch.busy([unit]) for launch in launches) for unit in trace.channels), default=0.0)
    moved = sum(launch.moved.get(0, 0.0) for launch in launches)
    waits: dict[int, float] = {}
    for launch in launches:
        for (_, unit), each in launch.units.items():
            waits[unit] = waits.get(unit, 0.0) + each.waited
    longest = max(waits, key=lambda unit: waits[unit], default=CORE)
    stalled = waits.get(longest, 0.0)
    names = {CORE: "room in a queue"}
    return KernelTotals(
        kernel=kernel,
        launches=len(launches),
        milliseconds=cycles / trace.megahertz / 1e3,
        matrix=matrix / possible,
        core=core / possible,
        dma=dma / possible,
        global_bytes=moved,
        needed_bytes=sum(launch.needed for launch in launches),
        bandwidth=moved / (cycles * trace.bytes_per_cycle[0]),
        overlap=_overlap(launches),
        stall=names.get(longest, trace.units[longest]) if stalled else "",
        stalled=stalled / possible,
        intensity=(matrix or core) / moved if moved else 0.0,
    )


def _overlap(launches: list[Launch]) -> float:
    transfers = computation = both = 0.0
    for launch in launches:
        for core in {interval.core for interval in launch.intervals}:
            own = [interval for interval in launch.intervals if interval.core == core]
            moving = [*_union(each for each in own if each.unit >= FIRST_CHANNEL)]
            computing = [*_union(each for each in own if each.unit < FIRST_CHANNEL)]
            transfers += sum(end - start for start, end in moving)
            computation += sum(end - start for start, end in computing)
            both += _common(moving, computing)
    least = min(transfers, computation)
    return both / least if least else 0.0


def _union(intervals: Iterable[Interval]) -> Iterator[tuple[float, float]]:
    """Disjoint spans, in order, that cover the same cycles."""
    span: tuple[float, float] | None = None
    for start, end in sorted((interval.start, interval.end) for interval in intervals):
        if span and start <= span[1]:
            span = (span[0], max(span[1], end))
        else:
            if span:
                yield span
            span = (start, end)
    if span:
        yield span


def _common(first: list[tuple[float, float]], second: list[tuple[float, float]]) -> float:
    """Cycles in both of two lists of disjoint, ordered spans."""
    total, i, j = 0.0, 0, 0
    while i < len(first) and j < len(second):
        total += max(0.0, min(first[i][1], second[j][1]) - max(first[i][0], second[j][0]))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return total
