"""Consistency checks of a manifest: its parts against each other and against the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triton_porting_kit.abi.elements import PARAMETERS, POINTER_SIZE
from triton_porting_kit.replay.manifest import Buffer, Manifest, Slot

FIELD_TYPES = {name: element.cpp for name, element in PARAMETERS.items()}
"""The C++ type of a field in the argument block, by the type of a parameter that is not a pointer."""


def contradictions(manifest: Manifest, sizes: Mapping[str, int]) -> Iterator[str]:
    """The contradictions in a manifest, one sentence each. `sizes`: the sizes of the files in bytes, by name."""
    for stored in manifest.stored():
        if stored.size != sizes[stored.file]:
            yield f"{stored.file} has {sizes[stored.file]:,} bytes, and the manifest says {stored.size:,}"
    if (manifest.state == "failed") != (manifest.error is not None):
        yield f"the launch is {manifest.state}, with{'' if manifest.error else 'out'} an error"
    end = 0
    for slot in sorted(manifest.slots, key=lambda slot: slot.offset):
        yield from (f"parameter {slot.name!r:.80} {what}" for what in _of_slot(slot, manifest, end))
        end = slot.offset + slot.size
    for number, buffer in enumerate(manifest.buffers):
        yield from (f"buffer {number} {what}" for what in _of_buffer(number, buffer, manifest))


def _of_slot(slot: Slot, manifest: Manifest, end: int) -> Iterator[str]:
    block = manifest.block.size
    if slot.offset < end or slot.offset % slot.size or slot.offset + slot.size > block:
        yield (
            f"has {slot.size} bytes at {slot.offset:,} in an argument block of {block:,}, and the one before ends at "
            f"{end:,}"
        )
    if slot.is_pointer:
        expected: int | None = POINTER_SIZE
    else:
        expected = PARAMETERS[slot.type].size if slot.type in PARAMETERS else None
    if slot.size != expected:
        yield f"has the type {slot.type}, but {slot.size} bytes"
    if slot.buffer is None:
        return
    if not slot.is_pointer:
        yield f"has the type {slot.type}, but points to a buffer"
    if slot.buffer >= len(manifest.buffers):
        yield f"points to buffer {slot.buffer:,}, and there are {len(manifest.buffers)}"
    elif (slot.buffer_offset or 0) > manifest.buffers[slot.buffer].size:
        yield f"points to byte {slot.buffer_offset:,} of a buffer of {manifest.buffers[slot.buffer].size:,}"


def _of_buffer(number: int, buffer: Buffer, manifest: Manifest) -> Iterator[str]:
    if all(slot.buffer != number for slot in manifest.slots):
        yield "has no parameter that points to it"
    for stored in (buffer.before, buffer.after):
        if stored is not None and stored.size != buffer.size:
            yield f"has {buffer.size:,} bytes, but {stored.file} has {stored.size:,}"
    if buffer.after is None and manifest.state == "complete":
        yield "has no recorded content after a launch that returned"
