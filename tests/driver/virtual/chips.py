"""The virtual NPU's C API under ctypes, as tests call it: failures are raised."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Any

from triton_porting_kit.driver import virtual

STATUSES = [
    "OK",
    "OUT_OF_MEMORY",
    "INVALID_POINTER",
    "INVALID_MODULE",
    "LAUNCH_FAILED",
    "DEVICE_LOST",
    "ASSERTION_FAILED",
    "INVALID_ARGUMENT",
    "COPY_FAILED",
]
NUMBER = ctypes.c_uint64


class Config(ctypes.Structure):
    _fields_ = (
        ("memory_bytes", ctypes.c_uint64),
        ("scratchpad_bytes", ctypes.c_uint64),
        ("cores", ctypes.c_uint32),
        ("queue_depth", ctypes.c_uint32),
        ("watchdog_ms", ctypes.c_uint32),
        ("chip_path", ctypes.c_char * 512),
        ("faults", ctypes.c_char * 512),
        ("description", ctypes.c_char * 4096),
    )


class Counters(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in [
            "bytes_to_device",
            "bytes_to_host",
            "bytes_on_device",
            "bytes_filled",
            "commands",
            "launches",
            "programs",
            "kernel_nanoseconds",
            "scratchpad_high_water",
            "allocated_bytes",
            "allocated_peak",
            "allocations",
        ]
    )


class Refused(Exception):
    """A call did not return VNPU_OK."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(status, text)
        self.status, self.text = status, text


library = ctypes.CDLL(str(virtual.library()))
library.vnpu_last_error.restype = ctypes.c_char_p
library.vnpu_status_name.restype = ctypes.c_char_p


def call(name: str, *arguments: Any) -> None:
    """Call ``vnpu_NAME``; integers are passed as 64-bit numbers."""
    passed = [NUMBER(value) if type(value) is int else value for value in arguments]
    status = getattr(library, f"vnpu_{name}")(*passed)
    if status:
        assert library.vnpu_status_name(status).decode() == f"VNPU_{STATUSES[status]}"
        raise Refused(STATUSES[status], library.vnpu_last_error().decode())


def default_config() -> Config:
    config = Config()
    call("default_config", ctypes.byref(config))
    return config


class Chip:
    """An open device. Sizes are in bytes."""

    def __init__(self, **settings: Any) -> None:
        config = default_config()
        for name, value in settings.items():
            setattr(config, name, value)
        self.handle = ctypes.c_void_p()
        call("open", ctypes.byref(config), ctypes.byref(self.handle))

    def __enter__(self) -> Chip:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.handle:
            self.close()

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: call(name, self.handle, *arguments)

    def _result(self, name: str, *arguments: Any) -> int:
        result = NUMBER()
        call(name, self.handle, *arguments, ctypes.byref(result))
        return result.value

    def close(self) -> None:
        call("close", self.handle)
        self.handle = ctypes.c_void_p()

    def process(self) -> int:
        return self._result("chip_process")

    def config(self) -> Config:
        config = Config()
        call("get_config", self.handle, ctypes.byref(config))
        return config

    def counted(self) -> Counters:
        counters = Counters()
        call("counters", self.handle, ctypes.byref(counters))
        return counters

    def alloc(self, size: int, alignment: int = 64) -> int:
        return self._result("alloc", size, alignment)

    def array(self, data: bytes) -> int:
        """New memory with these contents, there for every queue: uploads are asynchronous, on queue 0."""
        address = self.alloc(len(data))
        self.write(address, data)
        self.queue_synchronize(0)
        return address

    def write(self, target: int, data: bytes, queue: int = 0) -> None:
        call("copy_to_device", self.handle, queue, target, data, len(data))

    def read(self, source: int, size: int, queue: int = 0) -> bytes:
        data = ctypes.create_string_buffer(size)
        call("copy_to_host", self.handle, queue, data, source, size)
        return data.raw

    def fill(self, target: int, value: int, size: int, queue: int = 0) -> None:
        call("fill", self.handle, queue, target, ctypes.c_uint8(value), size)

    def queue(self) -> int:
        return self._result("queue_create")

    def event(self) -> int:
        return self._result("event_create")

    def elapsed(self, start: int, end: int) -> float:
        result = ctypes.c_double()
        call("event_elapsed", self.handle, start, end, ctypes.byref(result))
        return result.value

    def load(self, binary: bytes) -> int:
        return self._result("module_load", binary, len(binary))

    def symbol(self, module: int, name: str) -> int:
        return self._result("get_symbol", module, name.encode())

    def launch(self, function: int, grid: tuple[int, int, int], *args: int, queue: int = 0) -> None:
        """`args` are packed as 64-bit integers."""
        block = struct.pack(f"<{len(args)}q", *args)
        self.launch_block(function, grid, block, queue)

    def launch_block(self, function: int, grid: tuple[int, int, int], block: bytes, queue: int = 0) -> None:
        counts = (ctypes.c_uint32(count) for count in grid)
        call("launch", self.handle, queue, function, *counts, block, len(block))

    def inject(self, faults: str) -> None:
        call("inject", self.handle, faults.encode())


def is_running(process: int) -> bool:
    """Whether a process is there and not merely waiting to be reaped."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def resident_bytes(process: int | str = "self") -> int:
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
