"""The AMD launcher: the packed block followed by the scratch buffers, by either of two launchers."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from triton_porting_kit.driver import Device, DeviceArray
from triton_porting_kit.errors import LaunchError, OptionError
from triton_porting_kit.launcher import GeneratedLauncher, PackedLauncher
from triton_porting_kit.toolchain import compat

HIDDEN = {"global_scratch": "*i8", "profile_scratch": "*i8"}
"""The two pointers that Triton's GPU lowering appends to a kernel's parameters."""

SELECTION_VARIABLE = "TPK_AMD_LAUNCHER"
"""Environment variable: ``packed`` (the default; nothing is compiled) or ``generated`` (C++ for each signature)."""

_LAUNCHERS = {"packed": PackedLauncher, "generated": GeneratedLauncher}


class AMDLauncher:
    """Launches one kernel, called as Triton calls launchers.

    Raises `OptionError` for an unknown launcher, and `LaunchError` for a cooperative kernel on a device without
    cooperative launches. Calls raise the errors of the kit's launchers.
    """

    def __init__(self, source: Any, metadata: Any, device: Any) -> None:
        cooperative = bool(getattr(metadata, "launch_cooperative_grid", False))
        if cooperative and not device.properties().extra["cooperativeLaunch"]:
            raise LaunchError(
                f"{device!r} has no cooperative launches: launch {metadata.name!r} without launch_cooperative_grid"
            )
        asked = os.environ.get(SELECTION_VARIABLE) or "packed"
        if asked not in _LAUNCHERS:
            raise OptionError(
                f"{SELECTION_VARIABLE} is {asked!r}", remedy=f"set it to one of {', '.join(_LAUNCHERS)}"
            )
        self.metadata = metadata
        self.entry = device.launch_entry(cooperative=cooperative)
        self._device: Device = device
        launcher: Any = _LAUNCHERS[asked](source, metadata, self.entry, hidden=HIDDEN)
        self.layout = launcher.layout
        self._launcher = launcher
        sizes = [getattr(metadata, f"{kind}_scratch_size", 0) for kind in ("global", "profile")]
        # Few kernels have scratch buffers; launches of the others skip the check.
        self._launch = None if any(sizes) else partial(launcher, **dict.fromkeys(HIDDEN))
        self._scratch: dict[int, tuple[int, DeviceArray]] = {}  # by stream, with the device's generation

    def __call__(self, *args: Any) -> None:
        if self._launch is not None:
            self._launch(*args)
        else:
            self._launch_with_scratch(*args)

    def _launch_with_scratch(self, x: int, y: int, z: int, stream: int, *args: Any) -> None:
        programs = max(x * y * z, 0) * getattr(self.metadata, "num_ctas", 1)
        self._launcher(
            x,
            y,
            z,
            stream,
            *args,
            global_scratch=self._allocate("global", programs, stream),
            profile_scratch=self._allocate("profile", programs, stream),
        )

    def _allocate(self, kind: str, programs: int, stream: int) -> Any:
        """A scratch buffer for a launch of that many programs, from the user's allocator if there is one."""
        size = programs * getattr(self.metadata, f"{kind}_scratch_size", 0)
        alignment = getattr(self.metadata, f"{kind}_scratch_align", 1)
        if size == 0:
            return None
        allocator = compat.scratch_allocator(kind)
        if allocator is not None:
            return allocator(size, alignment, stream)
        if kind == "profile":  # a profiler reads it, so it starts at zero and belongs to this launch
            return DeviceArray.zeros(size, "uint8", self._device, stream=stream, alignment=alignment)
        # Launches on one stream run in order, so they can share a buffer.
        found = self._scratch.get(stream)
        if found is None or found[0] != self._device.generation or found[1].nbytes < size:
            buffer = DeviceArray.empty(size, "uint8", self._device, alignment=alignment)
            self._scratch[stream] = found = self._device.generation, buffer
        return found[1]
