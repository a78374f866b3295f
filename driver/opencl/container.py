"""The container of a kernel for a chip whose compiler is in its driver: metadata, source, and the driver's binary.

The bytes are `MAGIC`, the length of the metadata as 4 bytes, little-endian, the metadata as JSON, the source in UTF-8,
and the binary, which may be empty. The metadata holds the kernel function's name, the bytes of scratch and how many of
them must be zero, the device and driver that the binary is for, the sizes of both parts and their SHA-256 digest.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.errors import InvalidModule

MAGIC = b"TPKCL\x00\x00\x01"


@dataclass(frozen=True)
class Container:
    """A kernel: `kernel` is the function's name in the source, `name` the kernel's own."""

    name: str
    kernel: str
    scratch_bytes: int
    pointers: tuple[int, ...]
    device: str
    driver: str
    source: str
    binary: bytes = b""
    buffers: bool = False
    """Whether the pointers are arguments of the kernel function, and their places in the block hold offsets."""
    work_items: int = 1
    """The work-items of a work-group, which runs programs together."""
    local_bytes: int = 0
    """Scratch of a work-group in local memory; the kernel function's argument is then that, and not a buffer."""

    def pack(self) -> bytes:
        """The container's bytes."""
        source = self.source.encode()
        metadata: dict[str, Any] = {
            "name": self.name, "kernel": self.kernel, "scratch_bytes": self.scratch_bytes,
            "pointers": list(self.pointers), "device": self.device, "driver": self.driver,
            "buffers": self.buffers, "work_items": self.work_items,
            "local_bytes": self.local_bytes,
            "source_bytes": len(source), "binary_bytes": len(self.binary),
            "sha256": hashlib.sha256(source + self.binary).hexdigest(),
        }  # fmt: skip
        head = json.dumps(metadata).encode()
        return MAGIC + len(head).to_bytes(4, "little") + head + source + self.binary

    @classmethod
    def unpack(cls, data: bytes, kernel: str = "") -> Container:
        """The container in `data`. Raises `InvalidModule`, with the kernel, for anything else or a damaged one."""
        if not data.startswith(MAGIC):
            raise InvalidModule(
                f"the binary of {kernel!r} is not a container of OpenCL C: it begins with other bytes"
            )
        start = len(MAGIC) + 4
        size = int.from_bytes(data[len(MAGIC) : start], "little")
        try:
            metadata = json.loads(data[start : start + size])
            middle = start + size + metadata["source_bytes"]
            source, binary = data[start + size : middle], data[middle:]
            if len(binary) != metadata["binary_bytes"]:
                raise ValueError(f"it has {len(binary)} bytes of binary, not {metadata['binary_bytes']}")
            if hashlib.sha256(source + binary).hexdigest() != metadata["sha256"]:
                raise ValueError("its digest is another")
            return cls(
                str(metadata["name"]), str(metadata["kernel"]), int(metadata["scratch_bytes"]),
                tuple(int(offset) for offset in metadata["pointers"]), str(metadata["device"]),
                str(metadata["driver"]), source.decode(), binary, bool(metadata["buffers"]),
                int(metadata["work_items"]), int(metadata["local_bytes"]),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidModule(f"the container of OpenCL C of {kernel!r} is damaged: {error}") from None
