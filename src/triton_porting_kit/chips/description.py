"""A chip as a typed value: cores, memories, DMA engines, vector and matrix units, and their speed.

Sizes are in bytes, speeds in bytes per cycle of the one clock, times in cycles.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

WINDOW_STEP = 65536
"""Each memory of a core's window begins at a multiple of this, and is followed by an unmapped page."""
FIRST_CHANNEL = 2
"""The number of the unit that is DMA channel 0; 0 is the core, 1 the matrix unit."""


class Scope(Enum):
    """Where a memory is. A core sees its own part of its cluster's memory."""

    CHIP = "chip"
    CLUSTER = "cluster"
    CORE = "core"


class Work(Enum):
    """The kinds of work of a core, each with its cycles. All but the first are vector instructions."""

    SCALAR = "scalar"
    SIMPLE = "simple"  # additions, comparisons, selections, logic, shifts
    MULTIPLY = "multiply"  # and fused multiply-adds
    DIVIDE = "divide"  # and square roots
    SPECIAL = "special"  # elementary functions that the unit has
    LOAD = "load"  # from local memory
    STORE = "store"
    REARRANGE = "rearrange"  # shuffles, transposes, single lanes
    CONVERT = "convert"  # between element types


@dataclass(frozen=True)
class Memory:
    """A memory. `bytes` is the size of each; `bytes_per_cycle` is shared by everything that uses it at a time."""

    name: str
    scope: Scope
    bytes: int
    alignment: int
    """Of the buffers in it: a power of two."""
    banks: int
    bytes_per_cycle: int
    latency: int
    """Cycles from the end of a transfer from this memory to its completion."""
    core_access: bool = False
    """Whether core code may read and write it. Never so for the memory of the chip."""
    burst_bytes: int = 1
    """What an access moves at least, at a multiple of itself: a power of two."""


@dataclass(frozen=True)
class Route:
    """A way of an engine from one memory to another."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


@dataclass(frozen=True)
class Engine:
    """A DMA engine of each core, with channels that are independent units. A transfer has up to `dimensions`."""

    name: str
    channels: int
    routes: tuple[Route, ...]
    dimensions: int
    element_bytes: tuple[int, ...]
    alignment: int
    """Of the first element in a local memory."""
    bytes_per_cycle: int
    """Of a channel."""
    start_cycles: int
    queue: int
    """Commands of a channel that may be pending; the core waits before it issues another one."""
    gather: bool = False
    gather_cycles: int = 0
    """Of each element of a gather or scatter."""


@dataclass(frozen=True)
class VectorUnit:
    """The core's vector unit: `bytes` of operands in an instruction, and the cycles of one by kind of work."""

    bytes: int
    cycles: Mapping[Work, float]


@dataclass(frozen=True)
class Product:
    """Types that the matrix unit multiplies, and the cycles that a tile of (m, n, k) takes.

    Both operands have the same type of `operands`, or any two of them if all have 8 bits.
    """

    operands: tuple[str, ...]
    """By Triton's names, as ``bf16``."""
    sums: str
    tile: tuple[int, int, int]
    cycles: int


@dataclass(frozen=True)
class MatrixUnit:
    """The matrix unit of each core: the memories of its operands and sums, and what it multiplies."""

    a: str
    b: str
    sums: str
    """The memories in which A, B and the sums must lie."""
    alignment: int
    """Of the first element of each."""
    start_cycles: int
    queue: int
    transposes: bool
    """Whether operands may be transposed in memory."""
    products: tuple[Product, ...]

    def product(self, a: str, b: str, sums: str) -> Product | None:
        """How it multiplies elements of these types; None if it does not."""
        for product in self.products:
            both = a in product.operands and b in product.operands
            if both and sums == product.sums and (a == b or (_eight_bits(a) and _eight_bits(b))):
                return product
        return None


@dataclass(frozen=True)
class Core:
    """What a core needs to command the other units."""

    issue_cycles: int


@dataclass(frozen=True)
class Host:
    """The path between the host and the memory of the chip."""

    bytes_per_cycle: int
    start_cycles: int


@dataclass(frozen=True)
class Link:
    """The port that leads to all other chips, as fast in both directions at a time."""

    bytes_per_cycle: int
    """In each direction."""
    latency: int
    """Cycles from the end of a transfer at its source to its arrival."""
    queue: int
    """Transfers of a core that may be under way; the core waits before it issues another one."""


@dataclass(frozen=True)
class ChipDescription:
    """A chip. `load` reads one from a file and checks it."""

    name: str
    title: str
    clock_mhz: int
    clusters: int
    cores_per_cluster: int
    launch_cycles: int
    core: Core
    host: Host
    memories: tuple[Memory, ...]
    engines: tuple[Engine, ...]
    vector: VectorUnit
    matrix: MatrixUnit | None = None
    link: Link | None = None

    @property
    def cores(self) -> int:
        """Cores of the chip."""
        return self.clusters * self.cores_per_cluster

    def memory(self, name: str) -> Memory:
        """The memory of a name. Raises `KeyError`."""
        return {memory.name: memory for memory in self.memories}[name]

    @property
    def global_memory(self) -> Memory:
        """The memory of the chip, of which there is one."""
        return next(memory for memory in self.memories if memory.scope is Scope.CHIP)

    @property
    def local_memories(self) -> tuple[Memory, ...]:
        """The memories of a core's window, in order: the core's own, then those of its cluster."""
        own = [memory for memory in self.memories if memory.scope is Scope.CORE]
        return (*own, *(memory for memory in self.memories if memory.scope is Scope.CLUSTER))

    def local_bytes(self, memory: Memory) -> int:
        """Bytes of a local memory that one core sees: of its cluster's, an equal part."""
        return memory.bytes // (self.cores_per_cluster if memory.scope is Scope.CLUSTER else 1)

    @functools.cached_property
    def window(self) -> dict[str, int]:
        """Where each local memory begins in a core's window. A page behind each is unmapped."""
        bases: dict[str, int] = {}
        at = 0
        for memory in self.local_memories:
            bases[memory.name] = at
            at += self._stride(memory)
        return bases

    @property
    def window_bytes(self) -> int:
        """Bytes of addresses of a core's window."""
        last = self.local_memories[-1]
        return self.window[last.name] + self._stride(last)

    def _stride(self, memory: Memory) -> int:
        """Addresses that a memory takes in the window, with the page behind it."""
        return (-(-self.local_bytes(memory) // WINDOW_STEP) + 1) * WINDOW_STEP

    @property
    def channels(self) -> tuple[Engine, ...]:
        """The engine of each DMA channel of a core, by the channel's number."""
        return tuple(engine for engine in self.engines for _ in range(engine.channels))

    @property
    def units(self) -> tuple[str, ...]:
        """The names of a core's units, by number. Unit 1 is there, unused, where there is no matrix unit."""
        return ("core", "matrix", *(f"dma{channel}" for channel in range(len(self.channels))))

    def routed(
        self, source: str, target: str, *, element_bytes: int = 0, gather: bool = False
    ) -> tuple[int, ...]:
        """The channels that can transfer from one memory to another, if given elements of this size; for `gather`, also
        by offsets.
        """
        return tuple(
            number
            for number, engine in enumerate(self.channels)
            if Route(source, target) in engine.routes
            and (not element_bytes or element_bytes in engine.element_bytes)
            and (engine.gather or not gather)
        )

    def buffer_alignment(self, memory: Memory) -> int:
        """The alignment of a buffer that all units can use, in bytes: a power of 2."""
        engines = [
            engine.alignment
            for engine in self.engines
            if any(memory.name in (route.source, route.target) for route in engine.routes)
        ]
        matrix = self.matrix
        if matrix is not None and memory.name in (matrix.a, matrix.b, matrix.sums):
            engines.append(matrix.alignment)
        return max(memory.alignment, *engines, 1)

    @functools.cached_property
    def digest(self) -> int:
        """A number of 64 bits, above 0, that differs between descriptions."""
        return int.from_bytes(hashlib.sha256(_body(self).encode()).digest()[:8], "little") or 1

    @property
    def text(self) -> str:
        """The description as the virtual NPU reads it."""
        return f"tpk-chip 1 {self.digest:016x}\n{_body(self)}"


def _eight_bits(name: str) -> bool:
    return name.startswith("fp8") or name in ("i8", "u8")


def _body(chip: ChipDescription) -> str:
    """A line for each part: a word, then its values, as the virtual NPU's `description.cpp` reads them."""
    lines = [
        _line("chip", chip.name, chip.clock_mhz, chip.clusters, chip.cores_per_cluster, chip.launch_cycles),
        _line("core", chip.core.issue_cycles),
        _line("host", chip.host.bytes_per_cycle, chip.host.start_cycles),
        *([_line("link", *vars(chip.link).values())] if chip.link else []),
        _memory("global", chip.global_memory, chip.global_memory.bytes, 0),
    ]
    for memory in chip.local_memories:
        lines.append(_memory("local", memory, chip.local_bytes(memory), chip.window[memory.name]))
    for engine in chip.engines:
        values = (engine.channels, engine.dimensions, engine.alignment, engine.bytes_per_cycle)
        lines.append(
            _line("engine", engine.name, *values, engine.start_cycles, engine.queue)
            + _line("", int(engine.gather), engine.gather_cycles, sum(engine.element_bytes))
        )
        lines += [_line("route", route.source, route.target) for route in engine.routes]
    lines.append(_line("vector", chip.vector.bytes, *(chip.vector.cycles[kind] for kind in Work)))
    if matrix := chip.matrix:
        lines.append(
            _line("matrix", matrix.a, matrix.b, matrix.sums, matrix.alignment, matrix.start_cycles)
            + _line("", matrix.queue, int(matrix.transposes))
        )
        for product in matrix.products:
            lines.append(_line("product", product.sums, *product.tile, product.cycles, *product.operands))
    return "\n".join(lines) + "\n"


def _memory(word: str, memory: Memory, size: int, base: int) -> str:
    shared = {"chip": 0, "cluster": 1, "core": 2}[memory.scope.value]
    values = (size, base, memory.alignment, memory.banks, memory.burst_bytes, memory.bytes_per_cycle)
    return _line(word, memory.name, shared, *values, memory.latency, int(memory.core_access))


def _line(*values: object) -> str:
    return " ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)
