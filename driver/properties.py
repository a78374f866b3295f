"""The plain data that the hooks of a device return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DeviceProperties:
    """The properties of a device. Sizes are in bytes, rates in kHz; 0 means unknown or not applicable."""

    name: str
    """The name for people, e.g. ``AMD EPYC 9755``."""
    arch: str
    """The name for the compiler, e.g. ``x86_64`` or ``gfx942``."""
    memory_bytes: int
    """Total device memory."""
    core_count: int
    """The number of programs that run concurrently at full speed."""
    max_scratch_bytes: int
    """On-chip memory that one program may use (Triton's shared memory); 0 if kernels have none."""
    max_threads_per_program: int = 1024
    """Largest ``num_warps * warp_size`` of one program."""
    warp_size: int = 1
    """Lanes that run in lockstep."""
    clock_rate_khz: int = 0
    memory_clock_rate_khz: int = 0
    memory_bus_width_bits: int = 0
    host_visible_memory: bool = False
    """Whether the host may read and write device memory at its device address."""
    in_process: bool = False
    """Whether kernels run in this process: they can access any of its memory, and the device works in forked
    children."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Further properties for the vendor's own code."""
    max_allocation_bytes: int = 0
    """The largest single allocation, e.g. OpenCL's ``CL_DEVICE_MAX_MEM_ALLOC_SIZE``; 0: all free memory."""
    max_dram_scratch_bytes: int = 0
    """Device memory that each thread has for the scratch of the programs it runs; 0: scratch is on chip."""
    modules_are_source: bool = False
    """Whether modules are source text that the runtime compiles when it loads them, e.g.

    OpenCL C, instead of binaries.
    """

    @property
    def largest_allocation(self) -> int:
        """Bytes of the largest single allocation, if the memory is free."""
        return self.max_allocation_bytes or self.memory_bytes

    @property
    def scratch_limit(self) -> int:
        """Bytes of scratch that a program may use, on chip or off. A kernel that needs more is refused."""
        return self.max_dram_scratch_bytes or self.max_scratch_bytes


@dataclass(frozen=True)
class NativeLaunchEntry:
    """A launch routine in native code, for launchers that bypass Python.

    `function` is the address of a `tpk::LaunchFunction` (see `triton_porting_kit.abi.launching`), and `context` its
    first argument. It may be called from any thread, without the GIL, and has copied `args` when it returns. It returns
    0, or a code of `LAUNCH_ERRORS` with a NUL-terminated text in `message`. Both numbers are valid as long as the
    device object lives.
    """

    function: int
    context: int
