"""`HipDevice`: an AMD GPU behind the device hooks."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from triton_porting_kit.binaries.code_object import CodeObject
from triton_porting_kit.driver.hip import _hip
from triton_porting_kit.driver.hip.code import check_code_object, check_kernel, required_bytes
from triton_porting_kit.driver.hip.library import open_library, shares_with_torch
from triton_porting_kit.driver.native_device import NativeDevice
from triton_porting_kit.driver.properties import DeviceProperties, NativeLaunchEntry
from triton_porting_kit.errors import InvalidModule, LaunchError


@dataclass(frozen=True)
class KernelResources:
    """The resources of a kernel: registers per thread, including spilled ones, and sizes in bytes."""

    threads: int
    registers: int
    spills: int
    lds_bytes: int


class HipDevice(NativeDevice):
    """An AMD GPU, through HIP.

    Handles of streams are HIP's own. Streams that others in the process created, such as torch, can be used as well,
    and so can memory that they allocated on this device. Events of others must first be registered by `adopt_event`.
    Every hook makes its device the thread's current one, and restores the previous one.

    The default stream is HIP's: its work is asynchronous, too. Host buffers of copies are kept alive until the copy has
    run.

    HIP does not work after ``os.fork()``: in the child, all hooks raise `DeviceLost`.
    """

    _native: _hip.Device

    def __init__(self, index: int = 0, library: _hip.Library | None = None) -> None:
        """`index` is HIP's number of the device, after ``HIP_VISIBLE_DEVICES``; the default `library` is the one found.

        Raises `ToolchainError` if there is no library, `InvalidArgument` if there is no such device.
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
        """The architecture with its features, on or off, such as ``gfx942:sramecc+:xnack-``."""
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
            extra={  # by the names in Triton's own AMD driver
                "max_num_regs": found["registers_per_block"],
                "max_threads_per_sm": found["max_threads_per_core"],
                "cooperativeLaunch": found["cooperative_launch"],
            },
        )

    def adopt_event(self, event: int) -> None:
        """Register an event that was created elsewhere, such as ``torch.cuda.Event().cuda_event``, for use by the
        hooks.

        `destroy_event` removes the registration and leaves the event to its owner, who must keep it alive until then.
        """
        self._native.adopt_event(event)

    # --- modules and launches ----------------------------------------------------------------------------

    def load_module(self, binary: bytes, name: str) -> int:
        """Load a code object that has a kernel `name`. It is read and compared with the device first.

        Raises `InvalidModule` for one that is damaged, for another architecture, without the kernel, or whose kernel
        takes more threads or local memory than the device has for a program.
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
        finally:  # a failure here belongs to work in flight, or leaves the module to a reset
            self._modules.pop(module, None)
            for function, (owner, _) in list(self._functions.items()):
                if owner == module:
                    self._functions.pop(function, None)

    def get_function(self, module: int, name: str, dynamic_lds: int = 0) -> int:
        """The handle of a kernel. `dynamic_lds`: bytes of local memory to add at launches.

        It is only needed for code objects that do not record it; those of the kit's AMD backend do.
        """
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
        """The resources of a kernel. Raises `InvalidModule` for an unknown handle."""
        try:
            return self._functions[function][1]
        except KeyError:
            raise InvalidModule(
                f"HIP device {self.index}: resources: function {function} does not exist or was unloaded"
            ) from None

    def launch(self, function: int, grid: Sequence[int], stream: int, args: bytes) -> None:
        """Like the hook. `args` may lack the scratch pointers that Triton's lowering appends; they are then NULL."""
        if not 1 <= len(grid) <= 3:
            raise LaunchError(
                f"HIP device {self.index}: launch: the grid has {len(grid)} counts, not one to three"
            )
        x, y, z = (*grid, 1, 1)[:3]
        self._native.launch(function, x, y, z, stream, args)

    def launch_entry(self, *, cooperative: bool = False) -> NativeLaunchEntry:
        """`launch` in native code. `cooperative`: for kernels whose programs wait for each other."""
        entry = _hip.cooperative_launch_entry if cooperative else _hip.launch_entry
        return NativeLaunchEntry(entry, self._native.context)

    # --- life --------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Free what this object created, and let HIP reset the device.

        HIP's reset destroys everything that the process has on the device. If torch uses the device, only what this
        object created is freed.
        """
        self._native.reset(not shares_with_torch())
        self._modules.clear()
        self._functions.clear()
        super().reset()

    def close(self) -> None:
        """Free what this object created. Hooks raise `DeviceLost` from now on. It is called when Python exits, too."""
        NativeDevice.reset(self)  # remaining arrays and kernels drop their references
        self._native.close()
        self._modules.clear()
        self._functions.clear()


def open_devices() -> list[HipDevice]:
    """All devices that HIP sees. Raises `ToolchainError` if there is no library."""
    library = open_library()
    return [HipDevice(index, library) for index in range(library.device_count())]


_opened: weakref.WeakSet[HipDevice] = weakref.WeakSet()


@atexit.register
def _close() -> None:
    # HIP's own exit handlers run later; nothing may be freed after them.
    for device in list(_opened):
        device.close()
