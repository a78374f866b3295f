"""What a launcher needs from a device: the address of its native launch routine."""

from __future__ import annotations

from typing import Protocol


class LaunchEntry(Protocol):
    """A device's native launch routine: its address and the pointer to pass as its first argument.

    The routine is a `tpk::LaunchFunction`, whose parameters `triton_porting_kit.abi.launching` defines. It copies
    `args` before it returns, and is called without the GIL. It returns 0, or a code of `LAUNCH_ERRORS` with a
    NUL-terminated text in `message`. If a signal handler has raised an exception meanwhile, it returns such a code with
    the exception set.
    """

    @property
    def function(self) -> int: ...

    @property
    def context(self) -> int: ...
