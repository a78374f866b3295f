"""The symmetric heap of a group in this process's own memory."""

from __future__ import annotations

import ctypes
import mmap

from triton_porting_kit.driver.symmetric import SymmetricHeap


class SharedHeap(SymmetricHeap):
    """A heap whose segment is mapped here, and stays mapped as long as the object lives."""

    def __init__(self, rank: int, ranks: int, part_bytes: int, memory: mmap.mmap) -> None:
        self._memory = memory
        self._start = ctypes.c_char.from_buffer(memory)
        super().__init__("host CPU", rank, ranks, part_bytes, ctypes.addressof(self._start))
