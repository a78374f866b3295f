"""The ``manifest.json`` of a recorded launch: its content as dataclasses, written and validated by its schema."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from triton_porting_kit import trust
from triton_porting_kit.errors import CaptureError

FORMAT = 2
"""Version of the schema. 2: with the kernel's `source`."""
READABLE = (1, 2)
NAME = "manifest.json"
SCHEMA = Path(__file__).parent / "schema.json"


@dataclass(frozen=True)
class StoredFile:
    """A file beside the manifest."""

    file: str
    size: int
    sha256: str

    @classmethod
    def write(cls, folder: Path, name: str, content: bytes) -> StoredFile:
        """Write `content` to a file in `folder`, atomically."""
        trust.write_private(folder / name, content)
        return cls(name, len(content), hashlib.sha256(content).hexdigest())


@dataclass(frozen=True)
class Slot:
    """A parameter's place in the argument block. `buffer` is None unless it is a pointer into a recorded buffer."""

    name: str
    type: str
    offset: int
    size: int
    value: int | str
    buffer: int | None = None
    buffer_offset: int | None = None

    @property
    def is_pointer(self) -> bool:
        return self.type.startswith("*")


@dataclass(frozen=True)
class Buffer:
    """Memory that arguments point to; `after` is None if the launch did not return."""

    names: list[str]
    address: str
    size: int
    alignment: int
    before: StoredFile
    after: StoredFile | None = None


@dataclass(frozen=True)
class Kernel:
    """The code of the kernel and its source."""

    name: str
    hash: str
    binary: StoredFile
    stage: str
    abi: int | None
    ttir: StoredFile | None
    source_file: str
    source_line: int
    source: StoredFile | None = None
    """Triton's IR before any pass of a backend; None if Triton did not keep it."""


@dataclass(frozen=True)
class Manifest:
    """A recorded launch; docs/debugging.md and ``schema.json`` describe the fields."""

    kernel: Kernel
    grid: tuple[int, int, int]
    stream: int
    device_number: int
    block: StoredFile
    slots: list[Slot]
    layout: dict[str, Any]
    buffers: list[Buffer]
    unresolved: list[dict[str, str]]
    notes: list[str]
    backend: str
    runtime: str
    target: dict[str, Any]
    device: dict[str, Any]
    metadata: dict[str, Any]
    versions: dict[str, str]
    time: str
    state: str = "launched"
    error: dict[str, str] | None = None

    def write(self, folder: Path) -> None:
        """Write the manifest to `folder`, atomically. Raises `CaptureError` if it does not match the schema."""
        text = json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n"
        trust.write_private(folder / NAME, text.encode())

    def to_json(self) -> dict[str, Any]:
        """The document with its digest. Raises `CaptureError` if it does not match the schema."""
        content = {
            "format": FORMAT,
            "state": self.state,
            "error": self.error,
            "time": self.time,
            "kernel": asdict(self.kernel),
            "launch": {"grid": list(self.grid), "stream": self.stream, "device": self.device_number},
            "arguments": {
                "block": asdict(self.block),
                "slots": [_without_nothing(asdict(slot)) for slot in self.slots],
                "layout": self.layout,
            },
            "buffers": [asdict(buffer) for buffer in self.buffers],
            **{name: getattr(self, name) for name in _PLAIN},
        }
        document: dict[str, Any] = plain(content)
        document["digest"] = digest(document)
        validate(document, "the manifest")
        return document

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        """The manifest that `to_json` wrote, from a document that was validated."""
        kernel, launch, arguments = data["kernel"], data["launch"], data["arguments"]
        ttir, source = kernel["ttir"], kernel.get("source")
        return cls(
            kernel=Kernel(
                **{
                    **kernel,
                    "binary": StoredFile(**kernel["binary"]),
                    "ttir": StoredFile(**ttir) if ttir else None,
                    "source": StoredFile(**source) if source else None,
                }
            ),
            grid=(launch["grid"][0], launch["grid"][1], launch["grid"][2]),
            stream=launch["stream"],
            device_number=launch["device"],
            block=StoredFile(**arguments["block"]),
            slots=[Slot(**slot) for slot in arguments["slots"]],
            layout=arguments["layout"],
            buffers=[_buffer(buffer) for buffer in data["buffers"]],
            time=data["time"],
            state=data["state"],
            error=data["error"],
            **{name: data[name] for name in _PLAIN},
        )

    def stored(self) -> list[StoredFile]:
        """All files that the manifest names; a file may occur several times."""
        listed = [self.kernel.binary, self.kernel.ttir, self.kernel.source, self.block]
        listed += [file for buffer in self.buffers for file in (buffer.before, buffer.after)]
        return [file for file in listed if file is not None]

    def files(self) -> dict[str, StoredFile]:
        """The files that the manifest names, by name."""
        return {file.file: file for file in self.stored()}


_PLAIN = ("unresolved", "notes", "backend", "runtime", "target", "device", "metadata", "versions")


def digest(data: Mapping[str, Any]) -> str:
    """The digest of a manifest without its digest. It detects accidental changes; it is not a signature."""
    content = {key: value for key, value in data.items() if key != "digest"}
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def validate(data: Any, what: str) -> None:
    """Raise `CaptureError` with the first place that does not match the schema."""
    import fastjsonschema

    try:
        _validator()(data)
    except fastjsonschema.JsonSchemaValueException as error:
        raise CaptureError(f"{what} does not match its schema: {error.message:.300}") from error


@cache
def _validator() -> Callable[[Any], Any]:
    import fastjsonschema

    compiled: Callable[[Any], Any] = fastjsonschema.compile(json.loads(SCHEMA.read_text(encoding="utf-8")))
    return compiled


def plain(value: Any) -> Any:
    """Convert `value` to what JSON can hold; anything else becomes text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        if hasattr(value, "_asdict"):
            return plain(value._asdict())
        return [plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    return str(value)


def _buffer(data: Mapping[str, Any]) -> Buffer:
    after = data["after"]
    return Buffer(
        **{
            **data,
            "before": StoredFile(**data["before"]),
            "after": StoredFile(**after) if after else None,
        }
    )


def _without_nothing(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value is not None}
