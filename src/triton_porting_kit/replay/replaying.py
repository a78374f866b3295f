"""Running a recorded launch again on a device of a backend, through the hooks of `Device`."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from triton_porting_kit.driver import DEFAULT_STREAM, Device
from triton_porting_kit.driver.adapter import TritonDriver
from triton_porting_kit.errors import CaptureError, DeviceError, InvalidModule
from triton_porting_kit.replay.capture import Capture
from triton_porting_kit.replay.comparison import Difference, difference
from triton_porting_kit.replay.manifest import Manifest
from triton_porting_kit.untrusted import Folder


@dataclass(frozen=True)
class Result:
    """The result of all runs of a launch."""

    differences: tuple[Difference, ...]
    """The differences of the first run that differs from the recording; empty if no memory was recorded."""
    error: DeviceError | None
    """The error of the last run, if it raised one."""
    milliseconds: tuple[float, ...]
    """The times of the runs that returned, from the device's events."""
    run: int
    """The number of the run with the differences or the error; otherwise the number of runs."""

    def agrees(self, manifest: Manifest) -> bool:
        """Whether the launch ended as recorded. If the recorded process ended during the launch: whether it returned
        without an error."""
        if self.error is not None:
            recorded = manifest.error or {}
            return type(self.error).__name__ == recorded.get("type") and not self.differences
        return manifest.error is None and not self.differences

    @property
    def timing(self) -> str:
        """The time of a run as text; empty if no run returned."""
        if not self.milliseconds:
            return ""
        if len(self.milliseconds) == 1:
            return f"{self.milliseconds[0]:.3f} ms"
        low, middle = min(self.milliseconds), statistics.median(self.milliseconds)
        return f"{middle:.3f} ms (median of {len(self.milliseconds)}; fastest {low:.3f} ms)"


def open_device(backend: str, number: int) -> Device:
    """Open device `number` of a backend. Raises `CaptureError` without such a device or a driver made with the kit."""
    from triton.backends import backends

    if backend not in backends:
        raise CaptureError(
            f"Triton has no backend {backend!r}; name one of {', '.join(sorted(backends))} with --backend"
        )
    driver = backends[backend].driver
    if not (isinstance(driver, type) and issubclass(driver, TritonDriver)):
        raise CaptureError(
            f"launches are replayed through the kit's device hooks, but the driver of backend {backend!r}, {driver}, "
            "does not derive from triton_porting_kit.driver.adapter.TritonDriver"
        )
    made: Any = driver
    devices = made().devices
    if number >= len(devices):
        raise CaptureError(
            f"backend {backend!r} has {len(devices)} devices, but the launch was recorded on device {number}"
        )
    device: Device = devices[number]
    return device


def uses_matrix_registers(manifest: Manifest) -> bool:
    """Whether the kernel uses AMX tile registers, which a process must request from Linux."""
    return "+amx-tile" in str(manifest.metadata.get("cpu_features", ""))


def check_replayable(manifest: Manifest) -> None:
    """Raise `CaptureError` if the memory of a pointer is not recorded."""
    if manifest.unresolved:
        why = "; ".join(f"'{item['name']}': {item['why']}" for item in manifest.unresolved)
        raise CaptureError(
            f"the launch cannot be run again, because the memory of a pointer is not recorded: {why}"
        )


def replay(capture: Capture, device: Device, *, repeat: int = 1, dump: Path | None = None) -> Result:
    """Run a recorded launch `repeat` times on `device`, each time with the recorded memory from before the launch.

    Stops at the first run that ends differently from the recording. `dump`: a folder for the memory after the last run,
    ``buffer-N.bin``. Raises `CaptureError` if the launch cannot be run.
    """
    check_replayable(capture.manifest)
    if uses_matrix_registers(capture.manifest):
        from triton_porting_kit.compiler.permissions import matrix_registers

        matrix_registers()
    with _prepared(capture, device) as prepared:
        return _run(capture, prepared, repeat, dump)


@dataclass
class _Prepared:
    device: Device
    function: int
    addresses: list[int]
    block: bytes


@contextlib.contextmanager
def _prepared(capture: Capture, device: Device) -> Iterator[_Prepared]:
    """Load the kernel, allocate the buffers, and build the argument block with their addresses."""
    manifest = capture.manifest
    try:
        module = device.load_module(capture.binary, manifest.kernel.name)
    except InvalidModule as error:
        raise CaptureError(
            f"this device cannot load the binary, which was compiled for {manifest.target.get('backend')} "
            f"{manifest.target.get('arch')}: {error}"
        ) from error
    addresses: list[int] = []
    try:
        function = device.get_function(module, manifest.kernel.name)
        for buffer in manifest.buffers:
            addresses.append(device.memalloc(buffer.size, max(64, buffer.alignment)))
        yield _Prepared(device, function, addresses, relocated(capture, addresses))
    finally:
        # On a lost device, freeing fails.
        with contextlib.suppress(DeviceError):
            for address in addresses:
                device.memfree(address)
            device.unload_module(module)


def relocated(capture: Capture, addresses: list[int]) -> bytes:
    """The argument block of a launch with its buffers at `addresses`."""
    block = bytearray(capture.block)
    for slot in capture.manifest.slots:
        if slot.buffer is not None:
            address = addresses[slot.buffer] + (slot.buffer_offset or 0)
            block[slot.offset : slot.offset + 8] = address.to_bytes(8, "little")
    return bytes(block)


def _run(capture: Capture, prepared: _Prepared, repeat: int, dump: Path | None) -> Result:
    device, manifest = prepared.device, capture.manifest
    times: list[float] = []
    start, end = device.create_event(), device.create_event()
    try:
        for run in range(1, repeat + 1):
            for buffer, address in zip(manifest.buffers, prepared.addresses, strict=True):
                if buffer.size:
                    device.memcpy_htod(address, np.frombuffer(capture.content(buffer.before), np.uint8))
            device.synchronize(DEFAULT_STREAM)
            try:
                device.record_event(start, DEFAULT_STREAM)
                device.launch(prepared.function, manifest.grid, DEFAULT_STREAM, prepared.block)
                device.record_event(end, DEFAULT_STREAM)
                device.synchronize(DEFAULT_STREAM)
            except DeviceError as error:
                return Result((), error, tuple(times), run)
            times.append(device.elapsed_time(start, end))
            contents = [
                _fetch(device, a, b.size) for a, b in zip(prepared.addresses, manifest.buffers, strict=True)
            ]
            differences = tuple(_differences(capture, contents))
            if dump is not None and (differences or run == repeat):
                _dump(dump, contents)
            if differences:
                return Result(differences, None, tuple(times), run)
        return Result((), None, tuple(times), repeat)
    finally:
        with contextlib.suppress(DeviceError):
            device.destroy_event(start)
            device.destroy_event(end)


def _differences(capture: Capture, contents: list[bytes]) -> Iterator[Difference]:
    manifest = capture.manifest
    if manifest.state != "complete":
        return
    for number, (buffer, content) in enumerate(zip(manifest.buffers, contents, strict=True)):
        found = difference(manifest, number, content, capture.content(buffer.after)) if buffer.after else None
        if found is not None:
            yield found


def _fetch(device: Device, address: int, size: int) -> bytes:
    content = np.empty(size, np.uint8)
    if size:
        device.memcpy_dtoh(content, address)
        device.synchronize(DEFAULT_STREAM)
    return content.tobytes()


def _dump(folder: Path, contents: list[bytes]) -> None:
    with Folder(folder, CaptureError, make=True) as place:
        for number, content in enumerate(contents):
            place.write(f"buffer-{number}.bin", content)
