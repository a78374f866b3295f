"""Finds the kernel line of a crash: a program that the host device runs then, and its registration with the device.

The crashed process cannot search itself, so this runs in a process of its own, on the kernel's artefacts in the compile
cache (`compiler.crashes`).
"""

from __future__ import annotations

import json
import linecache
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triton_porting_kit.driver.host import HostDevice

_PROGRAM = """\
import os, sys
sys.path[:] = {path!r}
os.environ.pop("TPK_CAPTURE", None)
from triton_porting_kit.backends.cpu.crashes import main
main(sys.argv[1:])
"""

_NEAR = 1 << 32
"""Addresses further away from an argument are not reported as before or behind it."""


def explain(device: HostDevice, metadata: Any) -> None:
    """Let the device explain crashes of a kernel that Triton is about to load, if its artefacts are in a folder."""
    from triton_porting_kit.toolchain import compat

    folder = compat.kernel_cache_folder(metadata.hash)
    if folder is not None and sys.executable:
        device.explain_crashes(metadata.name, [*_command(), str(folder), metadata.name])


@cache
def _command() -> tuple[str, ...]:
    path = [entry for entry in sys.path if os.path.isabs(entry)]
    return sys.executable, "-I", "-c", _PROGRAM.format(path=path)


def main(arguments: list[str]) -> None:
    """Print where a kernel crashed, given its cache folder, its name, and the device's numbers (`explain_crashes`)."""
    folder, name, *numbers = arguments
    size, offset, address, *pointers = (int(number, 16) for number in numbers)
    sentences = _line(Path(folder), name, size, offset) + _argument(Path(folder), name, address, pointers)
    sys.stdout.write("".join(f"  {sentence}\n" for sentence in sentences))


def _line(folder: Path, name: str, size: int, offset: int) -> list[str]:
    from triton_porting_kit.backends.cpu.compiler import CPUBackend
    from triton_porting_kit.compiler import crash_location

    metadata = json.loads((folder / f"{name}.json").read_text())
    place = crash_location(
        (folder / f"{name}.structured").read_text(),
        (folder / f"{name}.obj").read_bytes(),
        name,
        size,
        offset,
        **CPUBackend.lowering_options(metadata),
    )
    if place is None:
        return []
    line = linecache.getline(place.file, place.line).strip()
    return [f"{place.file}:{place.line}" + (f": {line}" if line else "")]


def _argument(folder: Path, name: str, address: int, pointers: list[int]) -> list[str]:
    """The position of the address relative to the nearest argument before it, or else the nearest one after it."""
    from triton_porting_kit.compiler import pointer_arguments

    names = pointer_arguments((folder / f"{name}.structured").read_text())
    arguments = zip(names, pointers, strict=False)  # if there are very many, not all are passed
    found = sorted((abs(address - start), start > address, argument) for argument, start in arguments)
    if not address or not found:
        return []
    behind = [entry for entry in found if not entry[1]]
    distance, before, argument = (behind or found)[0]
    if distance > _NEAR:
        return [f"the address is near none of the arguments {', '.join(names)}"]
    return [
        f"the address is {distance} bytes {'before' if before else 'behind'} the beginning of argument '{argument}'"
    ]
