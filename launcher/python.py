"""The launcher for a device that has only the Python hook `launch`: no native code. It is also the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from triton_porting_kit.launcher.guard import Guard
from triton_porting_kit.launcher.layout import ArgLayout
from triton_porting_kit.launcher.values import (
    check_grid,
    check_handle,
    check_hidden,
    check_leading,
)

LaunchHook = Callable[[int, tuple[int, int, int], int, bytes], Any]
"""A device's ``launch(function, grid, stream, args)``."""


class PythonLauncher:
    """Launches one kernel through a device's Python hook; same call and errors as `PackedLauncher`."""

    def __init__(
        self, src: Any, metadata: Any, launch: LaunchHook, *, hidden: Mapping[str, str] | None = None
    ) -> None:
        self.layout = ArgLayout.from_source(src, hidden)
        self.metadata = metadata
        self.guard = Guard(src, metadata, self.layout)
        self._launch = launch

    @classmethod
    def of(cls, src: Any, metadata: Any, device: Any) -> PythonLauncher:
        """The launcher of a `Device` without a native launch routine."""
        return cls(src, metadata, device.launch)

    def __call__(self, *call: Any, **hidden: Any) -> None:
        check_leading(len(call))
        x, y, z, stream, function, _, launch_metadata, enter_hook, exit_hook, *args = call
        grid = check_grid(x, y, z)
        stream, function = check_handle("stream", stream), check_handle("function", function)
        self.layout.signature.check_count(len(args))
        check_hidden(", ".join(slot.name for slot in self.layout.hidden), list(hidden))

        if enter_hook is not None:
            enter_hook(launch_metadata)
        block = self.layout.pack(args, hidden)
        if 0 not in grid:
            if not self.guard.fits(block, grid):
                function = self.guard.other_version()
            self._launch(function, grid, stream, block)
        if exit_hook is not None:
            exit_hook(launch_metadata)
