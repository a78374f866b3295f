"""A session that calls every hook of a HIP device, step by step, and cleans up behind itself after a failure."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from triton_porting_kit.driver.hip import HipDevice
from triton_porting_kit.errors import InvalidArgument, InvalidModule, InvalidPointer, PortingKitError

DATA = bytes(range(256)) * 4


@dataclass
class Session:
    """`run` does its steps; `clean_up` frees what they made."""

    device: HipDevice
    code: bytes
    """A code object of the kernel ``add``."""
    ends: dict[str, Callable[[], None]] = field(default_factory=dict)

    def run(self) -> None:
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[str]:
        """Every hook once at least; the results are compared."""
        device = self.device
        memory = self.allocate("memory", 1024)
        yield "memalloc"
        other = self.allocate("other", 1000, 4096)
        assert other % 4096 == 0
        yield "memalloc aligned"
        stream = device.create_stream()
        self.ends["stream"] = lambda: device.destroy_stream(stream)
        yield "create_stream"
        start, end = self.event("start"), self.event("end")
        device.record_event(start, stream)
        yield "record_event"
        device.memcpy_htod(memory, DATA, stream)
        device.memset(other, 7, 1000, stream)
        device.memcpy_dtod(other, memory, 500, stream)
        yield "copies"
        device.record_event(end, stream)
        device.wait_event(0, end)
        back = bytearray(1000)
        device.memcpy_dtoh(back, other)
        device.synchronize(0)
        assert bytes(back) == DATA[:500] + bytes([7]) * 500
        yield "events"
        device.synchronize_event(end)
        assert device.elapsed_time(start, end) >= 0
        yield "elapsed_time"
        module = device.load_module(self.code, "add")
        self.ends["module"] = lambda: device.unload_module(module)
        function = device.get_function(module, "add")
        yield "get_function"
        device.launch(function, (3,), stream, struct.pack("<QQQixxxxQQ", memory, other, other, 100, 0, 0))
        device.synchronize(stream)
        yield "launch"
        for name in list(reversed(self.ends)):
            self.end(name)
        yield "ends"
        device.synchronize()

    def allocate(self, name: str, *arguments: int) -> int:
        address = self.device.memalloc(*arguments)
        self.ends[name] = lambda: self.device.memfree(address)
        return address

    def event(self, name: str) -> int:
        event = self.device.create_event()
        self.ends[name] = lambda: self.device.destroy_event(event)
        return event

    def end(self, name: str) -> None:
        self.ends[name]()
        del self.ends[name]

    def clean_up(self) -> None:
        """Free what is left. What failed to be freed may be gone or not; then saying so is right."""
        for name in list(reversed(self.ends)):
            error = outcome(self.ends.pop(name))
            if error is not None:
                assert isinstance(error, InvalidArgument | InvalidModule | InvalidPointer)
                assert "hip" not in str(error)  # the device's own word, HIP was not asked
                assert any(word in str(error) for word in ("freed", "destroyed", "unloaded")), error


def outcome(run: Callable[[], None]) -> PortingKitError | None:
    """The kit's error of a call, or None; others pass."""
    try:
        run()
    except PortingKitError as error:
        return error
    return None
