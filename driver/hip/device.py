"""`HipDevice`: a GPU of AMD's behind the device hooks."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from triton_porting_kit.binaries.code_object import CodeObject
from triton_porting_kit.driver.device import DeviceProperties, NativeLaunchEntry
from triton_porting_kit.driver.hip import _hip
from triton_porting_kit.driver.hip.code import check_code_object, check_kernel, required_bytes
from triton_porting_kit.driver.hip.library import open_library, shares_with_torch
from triton_porting_kit.driver.native_device import NativeDevice
from triton_porting_kit.errors import InvalidModule, LaunchError


@dataclass(frozen=True)
class KernelResources:
    """What a kernel takes of the device; registers per thread, spilled ones included, sizes in bytes."""

    threads: int
    registers: int
    spills: int
    lds_bytes: int


class HipDevice(NativeDevice):
    """A GPU of AMD's, through HIP.

    Handles of streams are HIP's own: streams of others in the process, such as torch's, are as good as those that
    are made here, and so is memory that they allocated on this device. Events of others have to be made known
    first, by `adopt_event`. Every hook makes its device the thread's current one and sets that back.

    The default stream is HIP's: what is put on it runs later, too. Host buffers of copies are kept alive until the
    copy has run.

    HIP does not survive ``os.fork()``: in the child all hooks raise `DeviceLost`.
    """

    _native: _hip.Device

    def __init__(self, index: int = 0, library: _hip.Library | None = None) -> None:
        """`index`: HIP's number of the device, after ``HIP_VISIBLE_DEVICES``; `library`: the one that is found.

        Raises `ToolchainError` where there is no library, `InvalidArgument` for a number that no device has.
        """
        self.index = index
        self._native = _hip.Device(library or open_library(), index)
        self._found = self._native.properties()
        self._modules: dict[int, CodeObject] = {}
        self._functions: dict[int, tuple[int, KernelResources]] = {}
        _opened.add(self)

    def __repr__(self) -> str:
        return f"HipDevice({self.index}, {self.properties().name!r})"

    def properties(self) -> DeviceProperties:
        return self._properties

    @property
    def target_id(self) -> str:
        """The architecture with what is on and off of it, such as ``gfx942:sramecc+:xnack-``."""
        return str(self._found["target_id"])

    @cached_property
    def _properties(self) -> DeviceProperties:
        found = self._found
        arch = self.target_id.partition(":")[0]
        return DeviceProperties(
            name=found["name"] or arch,
            arch=arch,
            memory_bytes=found["memory_bytes"],
            core_count=found["core_count"],
            max_scratch_bytes=found["lds_bytes"],
            max_threads_per_program=found["max_threads_per_block"],
            warp_size=found["warp_size"],
            clock_rate_khz=found["clock_rate_khz"],
            memory_clock_rate_khz=found["memory_clock_rate_khz"],
            memory_bus_width_bits=found["memory_bus_width_bits"],
            extra={  # by the names that Triton's own AMD driver has for them
                "max_num_regs": found["registers_per_block"],
                "max_threads_per_sm": found["max_threads_per_core"],
                "cooperativeLaunch": found["cooperative_launch"],
            },
        )

    def adopt_event(self, event: int) -> None:
        """Let the hooks take an event of HIP's that was made elsewhere, such as ``torch.cuda.Event().cuda_event``.

        `destroy_event` ends that and leaves the event to its owner, who must keep it alive till then.
        """
        self._native.adopt_event(event)

    # --- modules and launches ----------------------------------------------------------------------------

    def load_module(self, binary: bytes, name: str) -> int:
        """Load a code object that has a kernel `name`. It is read and compared with the device first.

        Raises `InvalidModule` for one that is damaged, of another architecture, without the kernel, or whose
        kernel takes more threads or local memory than the device has for a program.
        """
        binary = bytes(binary)
        try:
            code = check_code_object(binary, name, self.target_id, self.properties())
        except InvalidModule as error:
            raise InvalidModule(
                f"HIP device {self.index}: load_module: the binary of kernel '{name}': {error}"
            ) from None
        module = self._native.load_module(binary, name)
        self._modules[module] = code
        return module

    def unload_module(self, module: int) -> None:
        try:
            self._native.unload_module(module)
        finally:  # a failure is of work in flight, or leaves the module to a reset
            self._modules.pop(module, None)
            for function, (owner, _) in list(self._functions.items()):
                if owner == module:
                    self._functions.pop(function, None)

    def get_function(self, module: int, name: str, dynamic_lds: int = 0) -> int:
        """Handle of a kernel. `dynamic_lds`: bytes of local memory to add at launches, where the code object does
        not say; those that the kit's AMD backend makes do."""
        code = self._modules.get(module)
        if code is None:
            raise InvalidModule(
                f"HIP device {self.index}: get_function: module {module} does not exist or was unloaded"
            )
        kernel = code.kernels.get(name)
        if kernel is None:
            raise InvalidModule(
                f"HIP device {self.index}: get_function: module {module} has no kernel '{name}', it has "
                f"{', '.join(sorted(code.kernels)) or 'none'}"
            )
        if kernel.dynamic_group_segment_size is not None:
            dynamic_lds = kernel.dynamic_group_segment_size
        lds = check_kernel(kernel, dynamic_lds, self.properties())
        places = [(argument.offset, argument.size) for argument in kernel.explicit_arguments]
        threads, required = kernel.max_flat_workgroup_size, required_bytes(kernel)
        function = self._native.get_function(module, name, threads, dynamic_lds, required, places)
        spills = kernel.sgpr_spill_count + kernel.vgpr_spill_count
        self._functions[function] = module, KernelResources(threads, kernel.vgpr_count, spills, lds)
        return function

    def resources(self, function: int) -> KernelResources:
        """What a kernel takes of the device. Raises `InvalidModule` for a handle of none."""
        try:
            return self._functions[function][1]
        except KeyError:
            raise InvalidModule(
                f"HIP device {self.index}: resources: function {function} does not exist or was unloaded"
            ) from None

    def launch(self, function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
        """As the hook says; `args` may lack the scratch pointers that Triton's lowering appends: they are NULL then."""
        if not 1 <= len(grid) <= 3:
            raise LaunchError(
                f"HIP device {self.index}: launch: the grid has {len(grid)} counts, not one to three"
            )
        x, y, z = (*grid, 1, 1)[:3]
        self._native.launch(function, x, y, z, stream, args)

    def launch_entry(self, *, cooperative: bool = False) -> NativeLaunchEntry:
        """`launch` in native code; `cooperative`: for kernels whose programs wait for each other."""
        entry = _hip.cooperative_launch_entry if cooperative else _hip.launch_entry
        return NativeLaunchEntry(entry, self._native.context)

    # --- life --------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Free what was made here, and let HIP reset the device.

        HIP's reset takes away what all of the process has on the device: where torch works on it, only what was
        made here goes.
        """
        self._native.reset(not shares_with_torch())
        self._modules.clear()
        self._functions.clear()
        super().reset()

    def close(self) -> None:
        """Free what was made here and be done: hooks raise `DeviceLost` from now on. Python's end does it, too."""
        NativeDevice.reset(self)  # arrays and kernels that are left let go of what is gone
        self._native.close()
        self._modules.clear()
        self._functions.clear()


def open_devices() -> list[HipDevice]:
    """All devices that HIP sees. Raises `ToolchainError` where there is no library."""
    library = open_library()
    return [HipDevice(index, library) for index in range(library.device_count())]


_opened: weakref.WeakSet[HipDevice] = weakref.WeakSet()


@atexit.register
def _close() -> None:
    # HIP has handlers of its own that run later: nothing may be freed after them.
    for device in list(_opened):
        device.close()
