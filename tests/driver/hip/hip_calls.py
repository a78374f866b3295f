"""HIP's functions under ctypes, as tests of the stand-in call them: failures are raised."""

from __future__ import annotations

import ctypes
from typing import Any

from standin_library import Standin

NUMBER = ctypes.c_uint64


class HipError(Exception):
    """A function did not return hipSuccess."""


class Hip:
    """The functions without their prefix; integers are passed as 64-bit numbers."""

    def __init__(self, standin: Standin) -> None:
        self._library = standin.library
        self._library.hipGetErrorName.restype = ctypes.c_char_p

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, f"hip{name}")

        def call(*arguments: Any) -> None:
            passed = [NUMBER(value) if type(value) is int else value for value in arguments]
            error = function(*passed)
            if error:
                raise HipError(self._library.hipGetErrorName(error).decode())

        return call

    def result(self, name: str, *arguments: Any) -> int:
        """What a function gives in its first parameter, a number."""
        result = NUMBER()
        getattr(self, name)(ctypes.byref(result), *arguments)
        return result.value

    def launch(
        self,
        function: int,
        block: bytes,
        grid: tuple[int, int, int] = (1, 1, 1),
        threads: int = 256,
        shared: int = 0,
        stream: int = 0,
        size: int | None = None,
    ) -> None:
        content = ctypes.create_string_buffer(block, len(block))
        length = ctypes.c_size_t(len(block) if size is None else size)
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(content), 2, ctypes.addressof(length), 3)
        self.ModuleLaunchKernel(function, *grid, threads, 1, 1, shared, stream, None, extra)
