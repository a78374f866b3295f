"""`TritonDriver`: implements Triton's driver interface on the device hooks."""

from __future__ import annotations

import itertools
import threading
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, ClassVar

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from triton_porting_kit.abi.elements import PARAMETERS
from triton_porting_kit.driver import active
from triton_porting_kit.driver.array import DeviceArray
from triton_porting_kit.driver.benchmark import Benchmarker
from triton_porting_kit.driver.built import check_built
from triton_porting_kit.driver.device import DEFAULT_STREAM, Device
from triton_porting_kit.driver.interface import DeviceInterface
from triton_porting_kit.errors import InvalidArgument, SignatureError
from triton_porting_kit.toolchain import compat, launches, tuning

_CPP_TYPES = {name: element.cpp.removeprefix("std::") for name, element in PARAMETERS.items()} | {
    "i1": "int8_t"
}
"""As in Triton's own drivers; floats that not every compiler supports are bit patterns."""


class _OneObject(ABCMeta):
    """The type of classes that have one object each: every call of the class returns it."""

    _objects: ClassVar[dict[type, Any]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        with cls._lock:
            if cls not in cls._objects:
                cls._objects[cls] = super().__call__(*args, **kwargs)
            return cls._objects[cls]


class _Active:
    """What tuning asks about the active driver, which may be of another kind."""

    @staticmethod
    def unused_options() -> frozenset[str]:
        from triton.runtime import driver

        found: frozenset[str] = getattr(driver.active, "unused_options", frozenset())
        return found

    @staticmethod
    def benchmarker() -> Benchmarker | None:
        from triton.runtime import driver

        return Benchmarker(driver.active) if isinstance(driver.active, TritonDriver) else None

    @staticmethod
    def compiles_in_forks() -> bool:
        from triton.runtime import driver

        return bool(getattr(driver.active, "compiles_in_forks", False))


class TritonDriver(DriverBase, metaclass=_OneObject):  # type: ignore[misc]
    """The driver of a backend. A vendor derives from it, sets the class attributes, and implements two methods.

    A class has one object, which serves all threads; each thread has its own current device and stream. Programs
    create drivers whenever they switch between backends, as Inductor does with ``set_driver_to_cpu`` and
    ``set_driver_to_gpu``. They get the same object each time, so that the device is opened once and its addresses stay
    valid. Devices are opened when first needed, so that importing Triton costs no more than the query of the target.
    """

    backend_name: ClassVar[str]
    """Name of the backend's entry point, as in ``TRITON_DEFAULT_BACKEND``."""
    fallback: ClassVar[bool] = False
    """Whether any other available backend takes precedence: for devices that every machine has."""
    torch_device: ClassVar[str] = "cpu"
    """The type of the torch device whose tensors kernels of this backend accept."""
    benchmark_cache_bytes: ClassVar[int] = 32 << 20
    """Bytes to overwrite between timed runs, so that each starts with cold caches."""
    models_time: ClassVar[bool] = False
    """Whether events carry the time of a simulated chip, which repetition does not change, instead of a real one's."""
    unused_options: ClassVar[frozenset[str]] = frozenset()
    """Compile options that do not change a kernel's speed, such as ``num_stages``: of configurations that differ only
    in them, the autotuner tries the first."""
    compiles_in_forks: ClassVar[bool] = False
    """Whether a process that is forked from this one can compile, which the autotuner then has several do. Not where a
    compiler needs the device, or libraries whose threads do not survive a fork."""
    replay_runtime: ClassVar[str] = ""
    """How ``tpk replay --emit-cpp`` writes programs for these devices.

    ``host``, ``vnpu``, or ``MODULE:NAME`` of a `triton_porting_kit.replay.ReplayRuntime`. Empty: not supported.
    """
    launcher_cls: Any
    """``launcher_cls(source, metadata)`` creates the callable that launches a compiled kernel."""
    on_open: ClassVar[Callable[[Device], None] | None] = None
    """If set, called with each device that is opened. The recorder of launches uses it to track the device's memory."""

    def __init__(self) -> None:
        super().__init__()
        compat.share_kernel_caches()
        compat.watch_loaded_kernels()
        launches.check_launches()
        tuning.tune_quickly(_Active)
        self.utils = DriverUtils(self)
        self._current = _Current()
        self.inherited_stream: Callable[[], int] | None = None
        """If set, gives the current stream of threads that have set none, such as those of torch's autograd."""

    # --- what a vendor implements --------------------------------------------------------------------------

    @abstractmethod
    def make_device(self) -> Device:
        """Open the device. Called once, when it is first needed."""

    @abstractmethod
    def make_target(self, device: Device) -> GPUTarget:
        """The target that kernels for `device` are compiled for."""

    def make_devices(self) -> Sequence[Device]:
        """All devices of the backend, if there are several; `make_device` is then not called."""
        return [self.make_device()]

    @classmethod
    def is_available(cls) -> bool:
        """Whether the machine has a device of this kind. Triton calls this early, so it should be cheap."""
        return True

    # --- selection ---------------------------------------------------------------------------------------

    @classmethod
    def is_active(cls) -> bool:
        """Whether Triton uses this backend.

        ``TRITON_DEFAULT_BACKEND`` decides if it is set. Otherwise the device must be available, and no driver from
        outside the kit may be active; a `fallback` also yields to the kit's other backends. If several remain, the
        first by name is active, so that Triton starts even with several backends on virtual NPUs. The kit's drivers are
        never asked for `is_active` here, only for these facts, so that two drivers cannot query each other forever.
        """
        selected = active.selected_backend()
        if selected is not None:
            return selected == cls.backend_name and cls.is_available()
        return cls.is_available() and not any(
            cls._yields_to(name, driver) for name, driver in active.registered_drivers().items()
        )

    @classmethod
    def _yields_to(cls, name: str, driver: Any) -> bool:
        if name == cls.backend_name:
            return False
        if not (isinstance(driver, type) and issubclass(driver, TritonDriver)):
            return active.reports_active(driver)
        if not driver.is_available():
            return False
        return name < cls.backend_name if driver.fallback == cls.fallback else cls.fallback

    # --- devices, targets, streams -----------------------------------------------------------------------

    @cached_property
    def devices(self) -> Sequence[Device]:
        """The devices, opened on first use. Raises `BuiltWithAnotherKit` before it opens one."""
        package = type(self).__module__.partition(".")[0]
        self.is_available()  # loads the compiled part, where there is one
        check_built(package)
        devices = self.make_devices()
        if TritonDriver.on_open is not None:
            for device in devices:
                TritonDriver.on_open(device)
        return devices

    @property
    def has_one_device(self) -> bool:
        """Whether a kernel compiled for one device is valid under every name that programs use for a device."""
        return len(self.devices) == 1

    @property
    def device(self) -> Device:
        """The current device."""
        return self.devices[self.get_current_device()]

    @cached_property
    def _targets(self) -> list[GPUTarget]:
        return [self.make_target(device) for device in self.devices]

    def get_current_target(self) -> GPUTarget:
        return self._targets[self.get_current_device()]

    def get_current_device(self) -> int:
        return self._current.device

    def set_current_device(self, device: int) -> None:
        """Make the device with this index current in this thread."""
        self._check_device(device)
        self._current.device = device

    def get_current_stream(self, device: int | None = None) -> int:
        """The handle of the stream that launches of this thread use."""
        stream = self._current.streams.get(self._current.device if device is None else device)
        if stream is not None:
            return stream
        return DEFAULT_STREAM if self.inherited_stream is None else self.inherited_stream()

    def set_current_stream(self, stream: int, device: int | None = None) -> None:
        """Let launches of this thread on a device (the current one by default) use `stream`."""
        self._current.streams[self._current.device if device is None else device] = stream

    @contextmanager
    def stream(self, stream: int) -> Iterator[int]:
        """A context in which `stream` is current on the current device."""
        device, previous = self.get_current_device(), self.get_current_stream()
        self.set_current_stream(stream, device)
        try:
            yield stream
        finally:
            self.set_current_stream(previous, device)

    def _check_device(self, device: int) -> None:
        if not 0 <= device < len(self.devices):
            raise InvalidArgument(f"{self.backend_name}: there is no device {device} of {len(self.devices)}")

    # --- types, torch ------------------------------------------------------------------------------------

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C++ type of a parameter of Triton's type `ty`."""
        if ty.startswith("*"):
            return "void*"
        try:
            return _CPP_TYPES[ty]
        except KeyError:
            raise SignatureError(f"no C++ type for a parameter of type {ty!r}") from None

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device(self.torch_device)

    # --- benchmarks --------------------------------------------------------------------------------------

    def get_device_interface(self) -> DeviceInterface:
        """The part of ``torch.cuda`` that ``triton.testing`` uses, implemented by this driver without torch."""
        return DeviceInterface(self)

    def get_benchmarker(self) -> Callable[..., Any]:
        return Benchmarker(self)

    def get_empty_cache_for_benchmark(self) -> DeviceArray:
        size = min(self.benchmark_cache_bytes, self.device.properties().largest_allocation)
        return DeviceArray.empty(size, "uint8", self.device)

    def clear_cache(self, cache: DeviceArray) -> None:
        cache.fill_(0, stream=self.get_current_stream())

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: int | None) -> DeviceArray:
        return DeviceArray.zeros(
            size, "uint8", self.device, stream=stream or DEFAULT_STREAM, alignment=alignment
        )


class _Current(threading.local):
    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, int] = {}


class DriverUtils:
    """The interface ``driver.utils`` of Triton's compiled kernels.

    All drivers of a process share the handles of modules: Triton unloads a kernel by the driver that is active then.
    """

    _owners: ClassVar[dict[int, tuple[Device, int]]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()
    _handles: ClassVar[Iterator[int]] = itertools.count(1)

    def __init__(self, driver: TritonDriver) -> None:
        self._driver = driver

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[int, int, int, int, int]:
        """Load a kernel: (module, function, registers, spills, largest number of threads).

        The module handle is not the device's, because Triton does not say which device it unloads from.
        """
        self._driver._check_device(device)
        owner = self._driver.devices[device]
        module = owner.load_module(kernel, name)
        try:
            found = self.find_function(owner, module, name, shared)
        except BaseException:
            owner.unload_module(module)
            raise
        with self._lock:
            handle = next(self._handles)
            self._owners[handle] = (owner, module)
        owner.on_reset = partial(self._forget, owner)
        return handle, *found

    def find_function(self, device: Device, module: int, name: str, shared: int) -> tuple[int, int, int, int]:
        """A kernel of a module: (function, registers, spills, largest number of threads).

        Override it in drivers that know the resources of their kernels, or whose binaries do not say how much on-chip
        memory a launch must provide: `shared` bytes.
        """
        return device.get_function(module, name), 0, 0, device.properties().max_threads_per_program

    def _forget(self, device: Device) -> None:
        """Make Triton load kernels again at their next launch after a reset."""
        with self._lock:
            for module in [module for module, (owner, _) in self._owners.items() if owner is device]:
                del self._owners[module]
        compat.forget_loaded_kernels()

    def unload_module(self, module: int) -> None:
        with self._lock:
            found = self._owners.pop(module, None)
        if found is None:
            raise InvalidArgument(
                f"{self._driver.backend_name}: module {module} does not exist or was unloaded"
            )
        owner, handle = found
        owner.unload_module(handle)

    def get_device_properties(self, device: int) -> dict[str, Any]:
        """The properties, by the names that Triton reads (rates in kHz, sizes in bytes)."""
        self._driver._check_device(device)
        properties = self._driver.devices[device].properties()
        return {
            "max_shared_mem": properties.scratch_limit,
            "max_num_regs": 0,
            "multiprocessor_count": properties.core_count,
            "warpSize": properties.warp_size,
            "sm_clock_rate": properties.clock_rate_khz,
            "mem_clock_rate": properties.memory_clock_rate_khz,
            "mem_bus_width": properties.memory_bus_width_bits,
            "arch": properties.arch,
            "name": properties.name,
            "total_memory": properties.memory_bytes,
            **properties.extra,
        }
