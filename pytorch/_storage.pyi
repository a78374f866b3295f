"""The native caching allocator, see `native/pool.h`, and what a device guard answers, see `native/answer.cpp`."""

from typing import Any

Block = tuple[int, int, int, int]
"""Address, bytes, bytes requested, stream."""
Count = tuple[int, int, int, int]
"""Current, peak, allocated in total, freed in total."""

class Pool:
    def allocate(
        self,
        sizes: tuple[int, ...],
        strides: tuple[int, ...] | None,
        code: int,
        bits: int,
        stream: int,
        address: int,
        /,
    ) -> Any:
        """A DLPack capsule, or the number of bytes to allocate if no block is cached and `address` is 0."""

    def use(self, address: int, stream: int, /) -> bool: ...
    def take_pending(self) -> list[tuple[Block, list[int]]]: ...
    def settle(self, block: Block, /) -> None: ...
    def release(self) -> list[int]: ...
    def forget(self) -> None: ...
    def reset_peaks(self) -> None: ...
    def statistics(self) -> dict[str, Count]: ...
    def snapshot(self) -> list[tuple[int, int, int, int, bool]]: ...

class Answer:
    def __init__(self, value: object, /) -> None: ...
    def __call__(self) -> Any:
        """The value. A pending exception is put aside."""

    def take(self) -> BaseException | None:
        """The exception that was last put aside, once."""
