"""OpenCL's functions with failures on demand, and a count of the objects that were made and released."""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Any

from triton_porting_kit.driver.opencl import library as opencl_library

_KINDS = ("CommandQueue", "MemObject", "Event", "Program", "Kernel", "Context")
_MAKERS = {
    "clCreateCommandQueue": "CommandQueue", "clCreateBuffer": "MemObject", "clCreateKernel": "Kernel",
    "clCreateProgramWithSource": "Program", "clCreateProgramWithBinary": "Program", "clCreateContext": "Context",
}  # fmt: skip

_LIBRARIES: list[FailingLibrary] = []
"""All of them: native objects call their functions until they are gone, too."""


class FailingLibrary(opencl_library.Library):
    """The loader, whose functions are called through Python: also by native launches, which have their addresses.

    `failures` gives the code that a function returns instead of being called. `live` counts what is not released yet;
    events are counted where the caller asks for one.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.failures: dict[str, int] = {}
        self.live: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        for name in opencl_library._FUNCTIONS:
            real = getattr(self._library, name)
            kind = ctypes.CFUNCTYPE(real.restype, *real.argtypes)
            setattr(self, name, kind(self._wrapped(name, real)))
        _LIBRARIES.append(self)

    def _wrapped(self, name: str, real: Any) -> Any:
        makes = _MAKERS.get(name)
        counted = next((kind for kind in _KINDS if name in (f"clRetain{kind}", f"clRelease{kind}")), None)

        def call(*arguments: Any) -> Any:
            self.calls[name] += 1
            if (code := self.failures.get(name)) is not None:
                if real.restype is ctypes.c_int32:
                    return code
                if makes and arguments[-1]:
                    arguments[-1][0] = code
                return None
            result = real(*arguments)
            if makes and result:
                self.live[makes] += 1
            elif counted:
                self.live[counted] += 1 if name.startswith("clRetain") else -1
            elif name.startswith("clEnqueue") and arguments[-1]:
                self.live["Event"] += 1
            return result

        return call
