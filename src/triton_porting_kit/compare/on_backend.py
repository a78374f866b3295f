"""Runs versions of a recorded kernel on the backend it was recorded on: ``python -m ...compare.on_backend FOLDER``.

It runs in its own process, because a wrong kernel may crash it. `FOLDER` contains the files of `write`. The results of
each step are written to it, so that they remain if a later step fails.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triton_porting_kit import trust
from triton_porting_kit.compare.reference import Argument, Memory, argument_block
from triton_porting_kit.errors import CaptureError
from triton_porting_kit.replay import Capture, open_device, read, replay
from triton_porting_kit.toolchain import compat

STAGE = "structured"
_REQUEST = "trial.json"


@dataclass(frozen=True)
class Step:
    """A structured form that the backend compiles and runs; `arguments` are its additional arguments."""

    name: str
    text: str
    arguments: Sequence[Argument] = ()

    def write(self, folder: Path) -> dict[str, Any]:
        trust.write_private(folder / f"{self.name}.mlir", self.text.encode())
        arguments = [
            {"bytes": argument.hex()} if isinstance(argument, bytes) else {"memory": argument.nbytes}
            for argument in self.arguments
        ]
        return {"name": self.name, "arguments": arguments}


def write(folder: Path, capture: Path, steps: Sequence[Step]) -> None:
    """Write the steps to run. Memory that is an additional argument starts as zeros."""
    request = {"capture": str(capture), "steps": [step.write(folder) for step in steps]}
    trust.write_private(folder / _REQUEST, json.dumps(request).encode())


def left_by(folder: Path, name: str) -> Memory | None:
    """The memory after a step; None if the step did not complete."""
    if not (folder / f"{name}.done").exists():
        return None
    files = sorted(folder.glob(f"{name}-*.bin"))
    return [np.fromfile(file, np.uint8) for file in files]


def own_form(folder: Path) -> str:
    """The structured form that the backend's own stages produce; empty if there is none."""
    path = folder / "own.mlir"
    return path.read_text() if path.exists() else ""


def stages(folder: Path) -> list[str]:
    """The names of the backend's stages after the structured form."""
    path = folder / "stages.json"
    return [str(name) for name in json.loads(path.read_text())] if path.exists() else []


def reproduced(folder: Path) -> bool | None:
    """Whether a replay of the recorded binary gives the recorded result; None if unknown."""
    path = folder / "reproduced"
    return path.read_text() == "yes" if path.exists() else None


def main(folder: Path) -> None:
    request = json.loads((folder / _REQUEST).read_text())
    capture = read(Path(request["capture"]))
    device = open_device(capture.manifest.backend, capture.manifest.device_number)
    result = replay(capture, device)
    (folder / "reproduced").write_text("yes" if result.agrees(capture.manifest) else "no")
    pipeline, metadata = _pipeline(capture)
    (folder / "stages.json").write_text(json.dumps(pipeline.after(STAGE).names))
    (folder / "own.mlir").write_text(_own_form(capture, pipeline, dict(metadata)))
    for step in request["steps"]:
        name = step["name"]
        arguments: list[Argument] = [
            bytes.fromhex(given["bytes"]) if "bytes" in given else np.zeros(given["memory"], np.uint8)
            for given in step["arguments"]
        ]
        made = dict(metadata)
        text = (folder / f"{name}.mlir").read_text()
        binary = list(pipeline.after(STAGE).run(text, made).values())[-1]
        for number, content in enumerate(_run(capture, device, binary, arguments)):
            content.tofile(folder / f"{name}-{number:04d}.bin")
        (folder / f"{name}.done").touch()


def _pipeline(capture: Capture) -> tuple[Any, dict[str, Any]]:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    from triton_porting_kit.compiler import PipelineBackend

    target = GPUTarget(**{name: capture.manifest.target[name] for name in ("backend", "arch", "warp_size")})
    backend = make_backend(target)
    if not isinstance(backend, PipelineBackend):
        raise CaptureError("the backend's compiler is not made with the kit")
    known = {name: tuple(v) if isinstance(v, list) else v for name, v in capture.manifest.metadata.items()}
    options = backend.parse_options(known)
    pipeline = backend.pipeline(options)
    if STAGE not in pipeline.names:
        raise CaptureError(f"the backend's compiler has no stage {STAGE}")
    return pipeline, {"target": target, **vars(options)}


def _own_form(capture: Capture, pipeline: Any, metadata: dict[str, Any]) -> str:
    source = capture.manifest.kernel.source
    assert source is not None
    with tempfile.TemporaryDirectory(prefix="tpk-compare-") as folder:
        path = Path(folder) / "kernel.ttir"
        path.write_bytes(capture.content(source))
        module = compat.read_ttir(path)
    return str(pipeline.until(STAGE).run(module, metadata)[STAGE])


def _run(
    capture: Capture, device: Any, binary: Any, arguments: Sequence[Argument]
) -> Iterator[NDArray[np.uint8]]:
    manifest = capture.manifest
    binary = binary if isinstance(binary, bytes) else str(binary).encode()
    module = device.load_module(binary, manifest.kernel.name)
    function = device.get_function(module, manifest.kernel.name)
    with contextlib.ExitStack() as stack:

        def place(content: NDArray[np.uint8], alignment: int) -> tuple[int, int]:
            address = device.memalloc(max(content.nbytes, 1), max(64, alignment))
            stack.callback(device.memfree, address)
            if content.nbytes:
                device.memcpy_htod(address, content)
            return address, content.nbytes

        places = [
            place(np.frombuffer(capture.content(buffer.before), np.uint8), buffer.alignment)
            for buffer in manifest.buffers
        ]
        added = [a if isinstance(a, bytes) else place(a, 64) for a in arguments]
        device.synchronize(0)
        device.launch(function, manifest.grid, 0, argument_block(capture, places, added))
        device.synchronize(0)
        for address, size in (*places, *(item for item in added if not isinstance(item, bytes))):
            content = np.empty(size, np.uint8)
            if size:
                device.memcpy_dtoh(content, address)
                device.synchronize(0)
            yield content


if __name__ == "__main__":
    main(Path(sys.argv[1]))
