"""What the tests of recorded launches share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton_porting_kit.replay.manifest import NAME, digest

PROGRAMS = Path(__file__).parent / "recorded_programs.py"


@dataclass(frozen=True)
class Recorded:
    """What came of a program under `tpk capture`."""

    launches: list[Path]
    status: int
    printed: str


Recorder = Callable[[str], Recorded]


def document(launch: Path) -> dict[str, Any]:
    """The manifest of a launch."""
    found: dict[str, Any] = json.loads((launch / NAME).read_text())
    return found


def rewrite(launch: Path, data: dict[str, Any]) -> None:
    """Replace the manifest, with a digest that fits."""
    (launch / NAME).write_text(json.dumps(data | {"digest": digest(data)}))


def alter_output(launch: Path, name: str, byte: int, value: int) -> None:
    """Let another byte have been recorded in the buffer that parameter `name` leads to; the manifest agrees."""
    data = document(launch)
    (buffer,) = (buffer for buffer in data["buffers"] if name in buffer["names"])
    path = launch / buffer["after"]["file"]
    content = bytearray(path.read_bytes())
    content[byte] = value
    path.write_bytes(content)
    buffer["after"]["sha256"] = hashlib.sha256(content).hexdigest()
    rewrite(launch, data)
