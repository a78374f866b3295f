"""Arrays between pages that must not be touched: an access out of bounds ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
PAGE, NO_ACCESS = mmap.PAGESIZE, 0


class Row:
    """Floats whose first lies right behind an untouchable page, or whose last right before one."""

    def __init__(self, values: Array, *, at_end: bool) -> None:
        nbytes = values.nbytes
        self._inner = -(-max(nbytes, 1) // PAGE) * PAGE
        self._map = mmap.mmap(-1, self._inner + 2 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._start = -(-start // PAGE) * PAGE
        for page in (self._start, self._start + PAGE + self._inner):
            self._protect(page, NO_ACCESS)
        offset = PAGE + (self._inner - nbytes if at_end else 0)
        self._values = np.frombuffer(self._map, values.dtype, values.size, offset)
        self._values[:] = values.ravel()
        self.dtype = values.dtype

    @staticmethod
    def _protect(page: int, rights: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), rights) == 0

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._values.ctypes.data)

    def numpy(self) -> Array:
        """What it holds now."""
        return self._values.copy()

    def free(self) -> None:
        """Make the pages ordinary again."""
        for page in (self._start, self._start + PAGE + self._inner):
            self._protect(page, mmap.PROT_READ | mmap.PROT_WRITE)
