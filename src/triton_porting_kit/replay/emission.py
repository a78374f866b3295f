"""Writing a recorded launch as a standalone C++ program, with its build files and its data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2

from triton_porting_kit.errors import CaptureError
from triton_porting_kit.launcher.codegen import text
from triton_porting_kit.replay.capture import Capture
from triton_porting_kit.replay.comparison import element_type
from triton_porting_kit.replay.consistency import FIELD_TYPES
from triton_porting_kit.replay.manifest import Buffer, Manifest, Slot
from triton_porting_kit.replay.replaying import check_replayable
from triton_porting_kit.replay.runtimes import ReplayRuntime, find_runtime, runtime_of
from triton_porting_kit.untrusted import Folder

TEMPLATES = Path(__file__).parent / "templates"
BESIDE = "cpp"
"""The default folder of the program, beside the manifest."""

_HEADERS = ("<cstddef>", "<cstdint>", "<cstdio>", "<cstdlib>", "<cstring>")
"""The headers of the standard library that ``main.cpp`` needs with any runtime."""


def emit_cpp(capture: Capture, dest: Path | None = None, runtime: str | ReplayRuntime = "") -> None:
    """Write the program for `capture` to the folder `dest`, over an earlier program if there is one.

    `dest`: by default ``cpp`` beside the manifest. `runtime`: a `ReplayRuntime`, or its name as in `find_runtime`; by
    default the recorded driver's. Raises `CaptureError` if the memory of a pointer is not recorded, the runtime cannot
    run the launch, or a link leads out of the folder.
    """
    check_replayable(capture.manifest)
    if isinstance(runtime, ReplayRuntime):
        found = runtime
    else:
        found = find_runtime(runtime) if runtime else runtime_of(capture.manifest)
    found.check(capture)
    program = _Program(capture, found)
    # The content of the launch's folder is not trusted: links in it are not followed.
    place, prefix = (capture.folder, f"{BESIDE}/") if dest is None else (dest, "")
    with Folder(place, CaptureError, make=dest is not None) as folder:
        for name, content in {**program.files(), **program.data()}.items():
            folder.write(prefix + name, content)


@dataclass(frozen=True)
class _Field:
    """A field of the argument block; `pointer` is the value it is set to if it points to a buffer."""

    name: str
    declaration: str
    offset: int
    comment: str
    pointer: str


class _Program:
    def __init__(self, capture: Capture, runtime: ReplayRuntime) -> None:
        self._capture, self._runtime = capture, runtime
        self._manifest = capture.manifest
        self._binary, self._code = runtime.binary(capture)
        self._sources = runtime.sources(capture)
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )
        self._environment.filters["markdown"] = _in_markdown

    def files(self) -> dict[str, bytes]:
        """The program and its build files, by path."""
        values = self._values()
        made = {
            name.removesuffix(".j2"): self._environment.get_template(name).render(values).encode()
            for name in ("main.cpp.j2", "CMakeLists.txt.j2", "README.md.j2")
        }
        made["replay.h"] = (TEMPLATES / "replay.h").read_bytes()
        made["CMakePresets.json"] = (json.dumps(self._presets(), indent=2) + "\n").encode()
        return {**self._sources, **made}

    def data(self) -> dict[str, bytes]:
        """The recorded files, by path."""
        kernel = self._manifest.kernel
        kept = [file for name, file in self._manifest.files().items() if name != kernel.binary.file]
        recorded = {f"data/{file.file}": self._capture.content(file) for file in kept}
        return {**recorded, f"data/{self._binary}": self._code}

    def _presets(self) -> dict[str, Any]:
        preset: dict[str, Any] = {
            "name": "default",
            "binaryDir": "${sourceDir}/build",
            "cacheVariables": {"CMAKE_BUILD_TYPE": "Debug"},
        }
        if prefix := self._runtime.prefix():
            preset["cacheVariables"]["CMAKE_PREFIX_PATH"] = prefix
        return {"version": 3, "configurePresets": [preset]}

    # --- the variables of the templates --------------------------------------------------------------

    def _values(self) -> dict[str, Any]:
        manifest, kernel = self._manifest, self._manifest.kernel
        x, y, z = manifest.grid
        fields = self._fields()
        block: dict[str, Any] = (
            {"arguments": "&arguments", "size": "sizeof arguments"}
            if fields
            else {"arguments": "nullptr", "size": 0}
        )
        launch, includes = self._runtime.launch, self._runtime.includes
        return {
            "runtime": self._runtime,
            "own_headers": sorted({'"replay.h"', *(name for name in includes if name.startswith('"'))}),
            "headers": sorted({*_HEADERS, *(name for name in includes if not name.startswith('"'))}),
            "prefix": self._runtime.prefix(),
            "kernel": kernel.name,
            "project": re.sub(r"[^A-Za-z0-9_]", "_", kernel.name),
            "binary": self._binary,
            "block": manifest.block.file,
            "ttir": kernel.ttir is not None,
            "source": text.comment(f"{kernel.source_file}:{kernel.source_line}")
            if kernel.source_file
            else "",
            "about": _about(manifest),
            "checked": manifest.state == "complete",
            "fields": fields,
            "block_size": len(self._capture.block),
            "buffers": [self._buffer(number, buffer) for number, buffer in enumerate(manifest.buffers)],
            "code": {
                "open": self._render(self._runtime.open),
                "load": self._render(
                    self._runtime.load, file=self._binary, size=len(self._code), kernel=kernel.name
                ),
                "launch": self._render(launch, depth=2, x=x, y=y, z=z, **block),
                "wait": self._render(self._runtime.wait, depth=2),
                "close": self._render(self._runtime.close),
            },
            "sources": sorted(name for name in self._sources if name.endswith(".cpp")),
        }

    def _buffer(self, number: int, buffer: Buffer) -> Mapping[str, Any]:
        slot = next(slot for slot in self._manifest.slots if slot.buffer == number)
        dtype = element_type(slot.type)
        names: dict[str, Any] = {"address": f"buffer_{number}", "size": buffer.size}
        runtime, render = self._runtime, self._render
        return {
            "size": buffer.size,
            "comment": text.comment(
                ", ".join(f"{s.name}: {s.type}" for s in self._manifest.slots if s.buffer == number)
            ),
            "before": buffer.before.file,
            "after": buffer.after.file if buffer.after else "",
            "label": text.literal(f"buffer {number} ({slot.name}: {slot.type})"),
            "element": f'{{"{slot.type.removeprefix("*")}", {dtype.itemsize}, {slot.buffer_offset}}}',
            "allocate": render(runtime.allocate, alignment=max(64, buffer.alignment), **names),
            "copy_in": render(runtime.copy_in, depth=2, host=f"before_{number}", **names),
            "copy_out": render(runtime.copy_out, depth=2, host=f"after_{number}", **names),
            "free": render(runtime.free, **names),
        }

    def _fields(self) -> list[_Field]:
        taken: set[str] = set()
        fields = [self._field(slot, taken) for slot in self._manifest.slots]
        width = max((len(field.declaration) for field in fields), default=0)
        return [replace(field, declaration=f"{field.declaration:<{width}}") for field in fields]

    def _field(self, slot: Slot, taken: set[str]) -> _Field:
        plain = name = text.identifier(slot.name)
        number = 1
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name)
        pointer = ""
        if slot.buffer is not None:
            pointer = f"buffer_{slot.buffer}" + (f" + {slot.buffer_offset}" if slot.buffer_offset else "")
        return _Field(
            name=name,
            declaration=f"  {'std::uint64_t' if slot.is_pointer else FIELD_TYPES[slot.type]} {name};",
            offset=slot.offset,
            comment=text.comment(f"{slot.name}: {slot.type}, was {slot.value}"),
            pointer=pointer,
        )

    def _render(self, template: str, depth: int = 1, **values: Any) -> str:
        """Render C++ statements, indented for a body `depth` blocks deep."""
        rendered = self._environment.from_string(template).render(values)
        return "\n".join("  " * depth + line if line else line for line in rendered.splitlines())


def _in_markdown(line: str) -> str:
    """Escape text so that it makes no Markdown link and no HTML element."""
    return re.sub(r"([\\`<>\[\]])", r"\\\1", line)


def _about(manifest: Manifest) -> list[str]:
    """A description of the recording, in a few lines."""
    x, y, z = manifest.grid
    device = text.comment(str(manifest.device.get("name", "")))
    lines = [
        f"Recorded {manifest.time} on {device}, backend {manifest.backend}.",
        f"Grid: {x} x {y} x {z} programs.",
        f"Kit {manifest.versions['kit']}, Triton {manifest.versions['triton']}.",
    ]
    if manifest.state == "launched":
        lines.append("The recorded process ended during the launch.")
    if manifest.state == "failed":
        lines.append(f"The launch raised {(manifest.error or {}).get('type')} when it was recorded.")
    return [*lines, *(f"Note: {text.comment(note)}" for note in manifest.notes)]
