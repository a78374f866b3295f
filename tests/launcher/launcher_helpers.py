"""A device that records what it is launched with, and launchers of every strategy on top of it."""

from __future__ import annotations

import ctypes
import types
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.launcher import GeneratedLauncher, PackedLauncher, PythonLauncher
from triton_porting_kit.launcher.values import LAUNCH_ERRORS

LAUNCH_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_uint64,
    ctypes.c_uint32,
    ctypes.c_uint32,
    ctypes.c_uint32,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_uint64,
)


class Buffer:
    """Something with an address."""

    def __init__(self, address: Any) -> None:
        self.address = address

    def data_ptr(self) -> Any:
        return self.address


@dataclass
class Descriptor:
    base: Any
    shape: Any
    strides: Any
    padding: str = "zero"
    round_f32_to_tf32: bool = False


Config = namedtuple("Config", ["scale", "shift"])


@dataclass
class Launch:
    """One call of the recording device."""

    context: int | None
    stream: int
    function: int
    grid: tuple[int, int, int]
    block: bytes
    block_address: int


@dataclass
class RecordingDevice:
    """Its launch entry keeps every launch; it fails with `code` and `message` where one is set."""

    context: int = 0x5EED
    code: int = 0
    message: bytes = b""
    launches: list[Launch] = field(default_factory=list)
    on_launch: Any = None

    def __post_init__(self) -> None:
        self._callback = LAUNCH_ENTRY(self._launch)

    @property
    def function(self) -> int:
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _launch(self, context, stream, function, gx, gy, gz, args, size, message, message_size) -> int:  # type: ignore[no-untyped-def]
        block = ctypes.string_at(args, size) if size else b""
        self.launches.append(Launch(context, stream, function, (gx, gy, gz), block, args))
        if self.on_launch:
            self.on_launch()
        text = self.message[: message_size - 1] + b"\0"
        ctypes.memmove(message, text, len(text))
        return self.code

    def launch(self, function: int, grid: tuple[int, int, int], stream: int, args: bytes) -> None:
        """The Python hook of a device without a native entry."""
        self.launches.append(Launch(self.context, stream, function, grid, args, 0))
        if self.on_launch:
            self.on_launch()
        if self.code:
            raise LAUNCH_ERRORS.get(self.code, LAUNCH_ERRORS[4])(
                self.message.decode("utf-8", "replace")
                or f"the device refused the launch with code {self.code} and gave no reason"
            )


@dataclass
class Strategy:
    """One way to launch: `make(device, types, ...)` constructs its launcher."""

    name: str

    def make(
        self,
        device: RecordingDevice,
        types_: Any,
        constants: Any = None,
        metadata: Any = None,
        **options: Any,
    ) -> Any:
        src = types.SimpleNamespace(signature=types_, constants=constants or {})
        if self.name == "packed":
            return PackedLauncher(src, metadata, device, **options)
        if self.name == "generated":
            return GeneratedLauncher(src, metadata, device, **options)
        return PythonLauncher(src, metadata, device.launch, **options)


def call(launcher: Any, *args: Any, grid: tuple[Any, ...] = (1, 1, 1), **options: Any) -> None:
    """Launch by Triton's convention; `options` are the leading arguments, what else is there is hidden."""
    stream = options.pop("stream", 0)
    function = options.pop("function", 0xF00)
    metadata = options.pop("launch_metadata", None)
    enter, leave = options.pop("enter", None), options.pop("leave", None)
    launcher(*grid, stream, function, (4, 1, 0), metadata, enter, leave, *args, **options)
