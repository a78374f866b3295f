"""The device as Dynamo and Inductor see it."""

from __future__ import annotations

from typing import Any

from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.pytorch.device import module, streams


class AcceleratorInterface(DeviceInterface):
    """Forwards to ``torch.<name>``."""

    device = module.device
    Event = streams.Event
    Stream = streams.Stream

    class Worker:
        """What compile workers ask. They get the properties of the main process, and open no device."""

        @staticmethod
        def set_device(device: int) -> None:
            module.set_device(device)

        @staticmethod
        def current_device() -> int:
            return 0

        @staticmethod
        def get_device_properties(device: Any = None) -> Any:
            return module.get_device_properties(device)

    current_device = staticmethod(module.current_device)
    set_device = staticmethod(module.set_device)
    device_count = staticmethod(module.device_count)
    stream = staticmethod(streams.stream)
    current_stream = staticmethod(streams.current_stream)
    set_stream = staticmethod(streams.set_stream)
    synchronize = staticmethod(module.synchronize)
    is_available = staticmethod(module.is_available)
    memory_allocated = staticmethod(module.memory_allocated)
    maybe_exchange_device = staticmethod(module._exchange_device)
    exchange_device = staticmethod(module._exchange_device)

    @staticmethod
    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        streams.set_stream(streams.Stream(stream_id=stream_id))

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return accelerator().stream()

    @staticmethod
    def get_compute_capability(device: Any = None) -> Any:
        """The architecture in Triton's target: Inductor compiles its kernels for it."""
        return accelerator().target.arch

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return module.is_bf16_supported(including_emulation)

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:
        return True


def register() -> None:
    """Register the device with Dynamo."""
    name = accelerator().name
    register_interface_for_device(name, AcceleratorInterface)
    register_interface_for_device(f"{name}:0", AcceleratorInterface)
