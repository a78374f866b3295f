"""The per-thread scratch block, handed out like a stack whose lower part may have holes."""

from __future__ import annotations


class Scratch:
    """Offsets in the scratch block."""

    ALIGNMENT = 64

    def __init__(self) -> None:
        self._top = 0
        self._sizes: dict[int, int] = {}
        self._holes: dict[int, int] = {}
        self.high_water = 0

    @classmethod
    def rounded(cls, size: int) -> int:
        """So many bytes in whole lines of the cache."""
        return -(-size // cls.ALIGNMENT) * cls.ALIGNMENT

    def take(self, size: int) -> int:
        """The offset of `size` fresh bytes."""
        size = self.rounded(max(1, size))
        fitting = [offset for offset, room in self._holes.items() if room >= size]
        if fitting:
            offset = min(fitting, key=lambda offset: (self._holes[offset], offset))
            room = self._holes.pop(offset)
            if room > size:
                self._holes[offset + size] = room - size
        else:
            offset = self._top
            self._top += size
            self.high_water = max(self.high_water, self._top)
        self._sizes[offset] = size
        return offset

    @property
    def mark(self) -> int:
        return self._top

    def release(self, mark: int) -> None:
        """Everything taken from above `mark` on may be handed out again."""
        self._top = mark
        self._sizes = {offset: size for offset, size in self._sizes.items() if offset < mark}
        self._holes = {offset: size for offset, size in self._holes.items() if offset < mark}

    def taken(self, mark: int) -> list[int]:
        """The offsets from `mark` on that are handed out."""
        return [offset for offset in self._sizes if offset >= mark]

    def give_back(self, offset: int) -> None:
        """What was taken at `offset` may be handed out again."""
        size = self._sizes.pop(offset)
        for start, room in list(self._holes.items()):
            if start + room == offset:
                del self._holes[start]
                offset, size = start, room + size
            elif start == offset + size:
                del self._holes[start]
                size += room
        if offset + size == self._top:
            self._top = offset
        else:
            self._holes[offset] = size

    def set_holes_aside(self) -> dict[int, int]:
        """From here on, take only from above; `put_back` takes the result when what was taken is released."""
        holes, self._holes = self._holes, {}
        return holes

    def put_back(self, holes: dict[int, int]) -> None:
        """The holes that were set aside may be used again."""
        self._holes = holes
