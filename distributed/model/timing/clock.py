"""How long what programs do takes on chips of a description that are joined by links."""

from __future__ import annotations

from triton_porting_kit.chips import ChipDescription, Link
from triton_porting_kit.distributed.model.timing.ports import Port, Window
from triton_porting_kit.errors import InvalidArgument


class Chip:
    """The parts of a rank's chip that its programs share."""

    def __init__(self, chip: ChipDescription) -> None:
        if chip.link is None:
            raise InvalidArgument(f"the chip {chip.name} has no link; add a table [link] to its description")
        self.description = chip
        self.link: Link = chip.link
        self.memory = Port(chip.global_memory.bytes_per_cycle)
        self.sends, self.receives = Port(self.link.bytes_per_cycle), Port(self.link.bytes_per_cycle)
        self.bytes_sent = 0


class Core:
    """A program on a core of its own, and when each of its units is done.

    The core issues commands and goes on. Transfers under way at a time, and products, are limited by the units' queues.
    A store and a product wait for the loads before them; vector work lets the core wait for these.
    """

    def __init__(self, chips: list[Chip], rank: int, now: float) -> None:
        self._chips, self._rank, self.now = chips, rank, now
        description = chips[rank].description
        self._issue = description.core.issue_cycles
        channels = description.channels
        self._engine = Port(sum(channel.bytes_per_cycle for channel in channels))
        self._start = max(channel.start_cycles for channel in channels)
        self._local = Window(sum(channel.queue for channel in channels))
        self._remote = Window(chips[rank].link.queue)
        self._matrix, self._products = Port(1), Window(description.matrix.queue if description.matrix else 1)
        self.loaded = self.stored = self.computed = 0.0
        """When what the program has loaded, stored, or multiplied so far is complete."""

    def element(self, size: int, peer: int, *, reads: bool) -> float:
        """An access of a single element, or an atomic operation. Returns when it takes place. One of another rank comes
        after all stores so far."""
        self.now += self._issue
        own, other = self._chips[self._rank], self._chips[peer]
        memory = own.description.global_memory
        size = max(size, memory.burst_bytes)
        if peer == self._rank:
            self.now += size / memory.bytes_per_cycle + (memory.latency if reads else 0)
            return self.now
        own.bytes_sent += size
        sent = own.sends.move(size, max(self.now, self.stored))
        arrival = max(other.receives.move(size, sent + own.link.latency), self.stored)
        if reads:
            self.now = arrival + own.link.latency
        return arrival

    def load(self, size: int, peer: int) -> None:
        """A tile of `size` bytes of a rank."""
        if peer == self._rank:
            self.now = self._local.room(self.now) + self._issue
            passed = self._engine.move(size, self.now + self._start)
            read = self._chips[peer].memory.move(size, self.now + self._start)
            end = max(passed, read) + self._chips[peer].description.global_memory.latency
            self._local.add(end)
        else:
            self.now = self._remote.room(self.now) + self._issue
            asked = self.now + self._start + self._chips[peer].link.latency
            end = max(
                self._engine.move(size, self.now + self._start), self._move(size, peer, self._rank, asked)
            )
            self._remote.add(end)
        self.loaded = max(self.loaded, end)

    def store(self, size: int, peer: int) -> None:
        """A tile of `size` bytes to a rank, after what it may depend on."""
        ready = max(self.loaded, self.computed)
        if peer == self._rank:
            self.now = self._local.room(self.now) + self._issue
            begin = max(self.now, ready) + self._start
            end = max(self._engine.move(size, begin), self._chips[peer].memory.move(size, begin))
            self._local.add(end)
        else:
            self.now = self._remote.room(self.now) + self._issue
            begin = max(self.now, ready) + self._start
            end = max(self._engine.move(size, begin), self._move(size, self._rank, peer, begin))
            self._remote.add(end)
        self.stored = max(self.stored, end)

    def _move(self, size: int, source: int, target: int, earliest: float) -> float:
        """A transfer over the link, which passes both ports and both memories; when it has arrived."""
        sender, receiver = self._chips[source], self._chips[target]
        latency = sender.link.latency
        sender.bytes_sent += size
        sent = sender.sends.move(size, sender.memory.move(size, earliest))
        first = max(earliest, sent - size / sender.link.bytes_per_cycle) + latency
        received = max(receiver.receives.move(size, first), sent + latency)
        return max(receiver.memory.move(size, first), received)

    def product(self, m: int, n: int, k: int, a: str, b: str) -> None:
        """A product of tiles, whose operands have been loaded."""
        matrix = self._chips[self._rank].description.matrix
        unit = matrix.product(a, b, "fp32") if matrix else None
        if matrix is None or unit is None:
            raise InvalidArgument(f"the chip has no product of {a} and {b} to fp32")
        self.now = self._products.room(self.now) + self._issue
        tiles = -(-m // unit.tile[0]) * -(-n // unit.tile[1]) * -(-k // unit.tile[2])
        begin = max(self.now, self.loaded)
        self.computed = self._matrix.work(matrix.start_cycles + tiles * unit.cycles, begin)
        self._products.add(self.computed)

    def vector(self, size: int) -> None:
        """Vector work of the core on `size` bytes that have been loaded."""
        self.now = max(self.now, self.loaded) + size / self._chips[self._rank].description.vector.bytes

    def end(self) -> float:
        """When all that the program has issued is complete."""
        return max(self.now, self.loaded, self.stored, self.computed)
