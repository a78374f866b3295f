"""`LaunchRecord`: writes one launch to disk, its inputs before it starts and its results after it."""

from __future__ import annotations

import os
import re
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import triton

import triton_porting_kit
from triton_porting_kit.abi.elements import PARAMETERS
from triton_porting_kit.driver import Device
from triton_porting_kit.driver.adapter import TritonDriver
from triton_porting_kit.errors import DeviceError, DeviceLost
from triton_porting_kit.launcher import ArgLayout, ArgSlot
from triton_porting_kit.replay.abi import abi_version, pointer_offsets
from triton_porting_kit.replay.folder import fits, give_back, numbering, warn
from triton_porting_kit.replay.manifest import (
    Buffer,
    Kernel,
    Manifest,
    Slot,
    StoredFile,
    plain,
)
from triton_porting_kit.replay.memory import Region, TrackedMemory, merged, region_of
from triton_porting_kit.replay.settings import Settings, readable
from triton_porting_kit.toolchain import compat

_MANIFEST_BYTES = 16 << 10
"""The approximate size of a manifest."""


@dataclass(frozen=True)
class Launch:
    """The call of a launcher, as its parts."""

    kernel: Any
    """Triton's compiled kernel."""
    driver: TritonDriver
    device: Device
    layout: ArgLayout
    block: bytes
    values: list[Any]
    """The values of the parameters, in the order of the layout's slots and then its hidden slots."""
    grid: tuple[int, int, int]
    stream: int
    missing: tuple[str, ...]
    """Hidden arguments whose values only the launcher knows."""

    @classmethod
    def of(
        cls,
        kernel: Any,
        driver: TritonDriver,
        layout: ArgLayout,
        leading: Sequence[Any],
        args: Sequence[Any],
        hidden: Mapping[str, Any],
    ) -> Launch | None:
        """The launch of a call; None for an empty grid, which launches nothing. Raises `SignatureError` as the launcher
        would."""
        grid = (int(leading[0]), int(leading[1]), int(leading[2]))
        if 0 in grid:
            return None
        missing = tuple(slot.name for slot in layout.hidden if slot.name not in hidden)
        given = {slot.name: hidden.get(slot.name, 0) for slot in layout.hidden}
        block = layout.pack(args, given)
        values = [*layout.signature.flatten(args), *(given[slot.name] for slot in layout.hidden)]
        return cls(kernel, driver, driver.device, layout, block, values, grid, int(leading[3]), missing)

    @property
    def slots(self) -> tuple[ArgSlot, ...]:
        return (*self.layout.slots, *self.layout.hidden)

    def word(self, slot: ArgSlot) -> int:
        """The bits of a parameter."""
        return int.from_bytes(self.block[slot.offset : slot.offset + slot.size], "little")


class TooLarge(Exception):
    """A launch would take more bytes than the limit for one launch."""

    def __init__(self, bytes_needed: int) -> None:
        super().__init__(f"it would take {readable(bytes_needed)}")


class LaunchRecord:
    """A launch whose inputs are on disk and that has not returned."""

    def __init__(self, launch: Launch, folder: Path, manifest: Manifest, contents: list[bytes]) -> None:
        self.launch, self.folder = launch, folder
        self._manifest, self._contents = manifest, contents

    @classmethod
    def begin(cls, launch: Launch, memory: TrackedMemory, settings: Settings) -> LaunchRecord | None:
        """Write the inputs of a launch. Returns None, with a warning, if a limit of the folder is reached.

        Raises `TooLarge` if it exceeds the limit for one launch, and the error of earlier work on the stream.
        """
        launch.device.synchronize(launch.stream)
        regions, unresolved = _regions(launch, memory)
        need = 2 * sum(region.size for region in regions) + len(launch.kernel.kernel) + _MANIFEST_BYTES
        if settings.most is not None and need > settings.most:
            raise TooLarge(need)
        if not fits(settings, launch.kernel.name, need):
            return None
        regions, contents = _contents_of(launch, regions, unresolved)
        temporary = Path(tempfile.mkdtemp(prefix=".tmp-", dir=settings.folder))  # mode 0700
        try:
            buffers = [
                Buffer(
                    names=region.names,
                    address=hex(region.address),
                    size=region.size,
                    alignment=_alignment(region.address),
                    before=StoredFile.write(temporary, f"buffer-{number}.before.bin", content),
                )
                for number, (region, content) in enumerate(zip(regions, contents, strict=True))
            ]
            notes = [*_notes(launch, memory), *_addresses_in(regions, contents, launch, memory)]
            manifest = _manifest(launch, temporary, buffers, regions, unresolved, notes)
            manifest.write(temporary)
            with numbering(settings.folder) as number:
                folder = settings.folder / f"{number:04d}-{_plain_name(launch.kernel.name)}"
                os.rename(temporary, folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        for item in unresolved if not settings.judged else ():
            warn(f"{folder} cannot be replayed: argument '{item['name']}': {item['why']}")
        for note in notes if not settings.judged else ():
            warn(f"{folder}: {note}")
        return cls(launch, folder, manifest, contents)

    def end(self, error: Exception | None) -> None:
        """Add the memory after the launch, and the error that it raised."""
        manifest = self._manifest
        if not isinstance(error, DeviceLost):
            pairs = list(zip(manifest.buffers, self._contents, strict=True))
            after = [self._after(number, *pair) for number, pair in enumerate(pairs)]
            manifest = replace(manifest, buffers=after)
            unchanged = sum(buffer.size for buffer in after if buffer.after == buffer.before)
            give_back(self.folder.parent, unchanged)
        raised = {"type": type(error).__name__, "message": str(error)} if error is not None else None
        replace(manifest, state="failed" if error else "complete", error=raised).write(self.folder)

    def _after(self, number: int, buffer: Buffer, before: bytes) -> Buffer:
        content = _read(self.launch, Region(int(buffer.address, 16), buffer.size))
        if content == before:
            return replace(buffer, after=buffer.before)
        return replace(buffer, after=StoredFile.write(self.folder, f"buffer-{number}.after.bin", content))


# --- the memory of the arguments ---------------------------------------------------------------------


def _regions(launch: Launch, memory: TrackedMemory) -> tuple[list[Region], list[dict[str, str]]]:
    """The memory that pointers point to, with overlapping regions merged; and the pointers whose memory is unknown."""
    found: list[Region] = []
    unresolved = [
        {"name": name, "why": "its value comes from the launcher and was not passed to the launch"}
        for name in launch.missing
    ]
    known = {slot.offset for slot in launch.slots if slot.type.startswith("*")}
    declared = pointer_offsets(launch.kernel.kernel, launch.kernel.name) or []
    unresolved += [
        {
            "name": f"byte {offset} of the argument block",
            "why": "the binary has a pointer there, but the launch has no pointer argument for it: the launcher adds "
            "arguments of its own; give the launcher an attribute `layout`, and let it take their values as keywords",
        }
        for offset in declared
        if offset not in known
    ]
    for slot, value in zip(launch.slots, launch.values, strict=True):
        if not slot.type.startswith("*") or slot.name in launch.missing:
            continue
        address = launch.word(slot)
        if address == 0:
            continue
        region = region_of(value, address, memory)
        if region is None or not region[0] <= address <= region[0] + region[1]:
            why = (
                f"{hex(address)}, passed as {type(value).__name__}, is not in memory that the device allocated, and "
                "the object does not tell its size; pass a tensor or a device array"
            )
            unresolved.append({"name": slot.name, "why": why})
        else:
            found.append(Region(*region, [slot.name]))
    return merged(found), unresolved


def _notes(launch: Launch, memory: TrackedMemory) -> list[str]:
    """Notes on integers that are addresses in device memory."""
    return [
        f"the integer '{slot.name}' is an address in device memory ({hex(launch.word(slot))}): if the kernel uses it "
        "as a pointer, a replay accesses wrong memory"
        for slot in launch.slots
        if slot.type in ("i64", "u64") and launch.word(slot) and memory.find(launch.word(slot))
    ]


def _addresses_in(
    regions: Sequence[Region], contents: Sequence[bytes], launch: Launch, memory: TrackedMemory
) -> Iterator[str]:
    """Notes on buffers of 64-bit integers or of pointers that contain device addresses."""
    types = {slot.name: slot.type for slot in launch.slots}
    for region, content in zip(regions, contents, strict=True):
        wide = [n for n in region.names if types[n] in ("*i64", "*u64") or types[n].startswith("**")]
        if not wide:
            continue
        words = np.frombuffer(content, np.uint64, len(content) // 8)
        count, first = memory.count_addresses(words)
        if count:
            yield (
                f"the memory of '{wide[0]}' contains {count} device address{'es' if count > 1 else ''} (the first at "
                f"byte {8 * first}): the memory at {'these addresses' if count > 1 else 'this address'} is not "
                "recorded, and a replay that uses such an address accesses wrong memory"
            )


def _contents_of(
    launch: Launch, regions: Sequence[Region], unresolved: list[dict[str, str]]
) -> tuple[list[Region], list[bytes]]:
    """The regions that can be read, and their contents. The others are added to `unresolved`."""
    found, contents = [], []
    for region in regions:
        try:
            contents.append(_read(launch, region))
        except DeviceLost:
            raise
        except DeviceError as error:
            unresolved += [{"name": n, "why": f"its memory cannot be read: {error}"} for n in region.names]
        else:
            found.append(region)
    return found, contents


def _read(launch: Launch, region: Region) -> bytes:
    """The memory of a region, after all work on the stream of the launch."""
    content = np.empty(region.size, np.uint8)
    if region.size:
        launch.device.memcpy_dtoh(content, region.address, launch.stream)
        launch.device.synchronize(launch.stream)
    return content.tobytes()


# --- the manifest ------------------------------------------------------------------------------------


def _manifest(
    launch: Launch,
    folder: Path,
    buffers: list[Buffer],
    regions: list[Region],
    unresolved: list[dict[str, str]],
    notes: list[str],
) -> Manifest:
    kernel, driver = launch.kernel, launch.driver
    ttir, source = kernel.asm.get("ttir"), kernel.asm.get("source")
    stage = next((name for name, text in kernel.asm.items() if text is kernel.kernel), "binary")
    file, line = _source_of(kernel.src)
    metadata = plain(kernel.metadata)
    return Manifest(
        kernel=Kernel(
            name=kernel.name,
            hash=str(kernel.hash),
            binary=StoredFile.write(folder, f"kernel.{_plain_name(str(stage))}", kernel.kernel),
            stage=str(stage),
            abi=abi_version(kernel.kernel),
            ttir=StoredFile.write(folder, "kernel.ttir", str(ttir).encode()) if ttir else None,
            source_file=file,
            source_line=line,
            source=StoredFile.write(folder, "kernel.source", str(source).encode()) if source else None,
        ),
        grid=launch.grid,
        stream=launch.stream,
        device_number=driver.get_current_device(),
        block=StoredFile.write(folder, "arguments.bin", launch.block),
        slots=[_slot(launch, slot, regions) for slot in launch.slots],
        layout=plain(launch.layout.to_dict()),
        buffers=buffers,
        unresolved=unresolved,
        notes=notes,
        backend=driver.backend_name,
        runtime=driver.replay_runtime,
        target=plain(kernel.metadata.target),
        device=plain(launch.device.properties()),
        metadata={name: value for name, value in metadata.items() if name != "target"},
        versions={
            "kit": triton_porting_kit.__version__,
            "triton": triton.__version__,
            "python": sys.version.split()[0],
        },
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def _slot(launch: Launch, slot: ArgSlot, regions: Sequence[Region]) -> Slot:
    plain_slot = Slot(slot.name, slot.type, slot.offset, slot.size, _value(launch, slot))
    if not plain_slot.is_pointer:
        return plain_slot
    address = launch.word(slot)
    for number, region in enumerate(regions):
        if slot.name in region.names:
            return replace(plain_slot, buffer=number, buffer_offset=address - region.address)
    return plain_slot


def _value(launch: Launch, slot: ArgSlot) -> int | str:
    word = launch.word(slot)
    if slot.type.startswith("*"):
        return hex(word)
    if slot.type == "bf16":
        return str(struct.unpack("<f", struct.pack("<I", word << 16))[0])
    value = struct.unpack("<" + PARAMETERS[slot.type].packed, word.to_bytes(slot.size, "little"))[0]
    return value if isinstance(value, int) else repr(value)


def _source_of(source: Any) -> tuple[str, int]:
    function = getattr(source, "fn", None)
    code = getattr(getattr(function, "fn", None), "__code__", None)
    return (code.co_filename, compat.definition_line(function)) if code else ("", 0)


def _alignment(address: int) -> int:
    """The largest power of two that divides an address, up to a page."""
    return min(address & -address, 4096) if address else 4096


def _plain_name(name: str) -> str:
    """The name with only characters that are valid in file names everywhere."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:100]
