"""What a launcher needs of a device: the address of its native launch routine."""

from __future__ import annotations

from typing import Protocol


class LaunchEntry(Protocol):
    """A device's native launch routine: its address and the pointer that it is given first.

    The routine is a `tpk::LaunchFunction`, whose parameters `triton_porting_kit.abi.launching` has. It copies `args`
    before it returns, and is called without the interpreter lock. It returns 0, or a code of `LAUNCH_ERRORS` with a
    NUL-terminated text in `message`. Where a handler of a signal has raised an exception meanwhile, it returns such a
    code with the exception set.
    """

    @property
    def function(self) -> int: ...

    @property
    def context(self) -> int: ...
