"""What a launcher needs from a device: the address of its native launch routine."""

from __future__ import annotations

from typing import Protocol

from triton_porting_kit.errors import MissingHook


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


def required(entry: LaunchEntry | None) -> LaunchEntry:
    """The entry, for a launcher that calls it. Raises `MissingHook` if the device has none."""
    if entry is None:
        raise MissingHook(
            "the device has no native launch routine: its hook `launch_entry` returned None, and this launcher calls "
            "that routine. Launch with PythonLauncher.of(source, metadata, device), which calls the hook `launch`, "
            "or implement `launch_entry`"
        )
    return entry
