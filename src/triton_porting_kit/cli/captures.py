"""The commands `tpk capture` and `tpk replay`; what they do is in `triton_porting_kit.replay`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triton_porting_kit.cli.errors import UserError
from triton_porting_kit.untrusted import shown

if TYPE_CHECKING:
    from triton_porting_kit.replay import Capture, Manifest, Result

Script = Annotated[Path, typer.Argument(metavar="SCRIPT", help="A Python program that launches kernels.")]
Arguments = Annotated[list[str] | None, typer.Argument(metavar="ARGS...", help="Arguments of the program.")]


def capture(
    script: Script,
    arguments: Arguments = None,
    dest: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the recorded launches, one subfolder each.")
    ] = Path("captures"),
    kernel: Annotated[
        str, typer.Option(metavar="PATTERN", help="Kernels by name, as files in a shell: `matmul_*`.")
    ] = "*",
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Record no more than N launches in DIR.")
    ] = None,
) -> None:
    """Run a Python program and record what its kernels are launched with, and what they leave in memory.

    Works for backends whose driver is made with the kit. What is there before a launch is on disk before it starts, so
    that a launch that takes the process or the chip down is recorded, too. Options stand before SCRIPT; what stands
    behind it is the program's. The exit status is the program's.

    docs/debugging.md says what is recorded. `TPK_CAPTURE=DIR` in the environment does the same for any program.
    """
    if not script.is_file():
        raise UserError(f"there is no file {script}")
    from triton_porting_kit.replay import launches_in, read
    from triton_porting_kit.replay.settings import COUNT, FOLDER, KERNEL

    before = set(launches_in(dest))
    environment = {**os.environ, FOLDER: str(dest.absolute()), KERNEL: kernel}
    environment.pop(COUNT, None)
    if limit is not None:
        environment[COUNT] = str(limit + len(before))
    status = subprocess.run(
        [sys.executable, str(script), *(arguments or [])], env=environment, check=False
    ).returncode
    recorded = [read(folder) for folder in launches_in(dest) if folder not in before]
    for found in recorded:
        _say(f"{found.folder}: {described(found.manifest)}", err=True)
    if not recorded:
        typer.echo(
            f"tpk: no launch of a kernel {kernel!r} was recorded; only drivers made with the kit record launches",
            err=True,
        )
    if status < 0:
        typer.echo(f"tpk: {script} died of {signal.Signals(-status).name}", err=True)
    raise typer.Exit(status if status >= 0 else 128 - status)


def _say(text: str, *, err: bool = False) -> None:
    """Print what may hold text of the recorded launch."""
    typer.echo(shown(text), err=err)


def described(manifest: Manifest) -> str:
    """A recorded launch in a line."""
    size = sum(buffer.size for buffer in manifest.buffers)
    ended = {
        "complete": "",
        "failed": f"; it raised {(manifest.error or {}).get('type')}",
        "launched": "; the process ended within it",
    }
    grid = "x".join(map(str, manifest.grid))
    count = len(manifest.buffers)
    return (
        f"{manifest.kernel.name}, grid {grid}, {count} buffer{'' if count == 1 else 's'} of {size:,} bytes in all"
        f"{ended[manifest.state]}"
    )


def replay(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of one recorded launch.")],
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The backend on whose device it runs; the recorded one by default."
        ),
    ] = "",
    repeat: Annotated[int, typer.Option(metavar="N", min=1, help="Run the launch N times and time it.")] = 1,
    dump: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write the memory after the launch to this folder.")
    ] = None,
    emit_cpp: Annotated[
        bool, typer.Option("--emit-cpp", help="Run nothing: write a C++ program that runs it without Python.")
    ] = False,
    dest: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Folder of the program. Default: DIR/cpp.")
    ] = None,
    runtime: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The runtime that the program is written for: host, vnpu, or MODULE:NAME; the driver's by default.",
        ),
    ] = "",
) -> None:
    """Run a recorded launch again on a device and compare the memory after it, bit by bit.

    The exit status is 0 if it ends as it was recorded, and 1 if not. A recorded launch holds code that runs with your
    rights: replay only what you recorded yourself. Folders that others can write are refused.
    """
    from triton_porting_kit.errors import InsecureCacheError
    from triton_porting_kit.replay import read

    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    if (dest or runtime) and not emit_cpp:
        raise UserError("--dest and --runtime belong to --emit-cpp")
    try:
        recorded = read(folder)
    except InsecureCacheError as error:
        raise UserError(str(error)) from error
    _say(described(recorded.manifest))
    for note in recorded.manifest.notes:
        _say(f"note: {note}", err=True)
    if emit_cpp:
        raise typer.Exit(_emit(recorded, dest, runtime))
    raise typer.Exit(_replay(recorded, backend or recorded.manifest.backend, repeat, dump))


def _replay(recorded: Capture, backend: str, repeat: int, dump: Path | None) -> int:
    from triton_porting_kit import replay as replaying
    from triton_porting_kit.replay.settings import FOLDER

    os.environ.pop(FOLDER, None)  # a replay is not recorded
    manifest = recorded.manifest
    device = replaying.open_device(backend, manifest.device_number)
    _say(f"device: {device.properties().name}")
    result = replaying.replay(recorded, device, repeat=repeat, dump=dump)
    for line in _told(manifest, result):
        _say(line)
    return 0 if result.agrees(manifest) else 1


def _told(manifest: Manifest, result: Result) -> list[str]:
    """How a replay went, for people."""
    lines = [f"time: {result.timing}"] if result.timing else []
    if result.error is not None:
        kind = type(result.error).__name__
        same = "as it was recorded" if result.agrees(manifest) else f"which was {_recorded_end(manifest)}"
        return [*lines, f"run {result.run} raised {kind}, {same}: {result.error}"]
    if result.differences:
        return [*lines, *map(str, result.differences), f"run {result.run} differs from what was recorded"]
    if manifest.state == "failed":
        return [*lines, f"it ended without an error, but was {_recorded_end(manifest)}"]
    if manifest.state == "launched":
        return [
            *lines,
            "it came back; there is nothing to compare with, for the recorded process ended within it",
        ]
    runs = "" if result.run == 1 else f", all {result.run} times"
    return [*lines, f"all memory is as it was recorded, bit for bit{runs}"]


def _recorded_end(manifest: Manifest) -> str:
    if manifest.state == "failed":
        return f"recorded to raise {(manifest.error or {}).get('type')}"
    return (
        "recorded to end without an error" if manifest.state == "complete" else "recorded to end the process"
    )


def _emit(recorded: Capture, dest: Path | None, runtime: str) -> int:
    from triton_porting_kit.replay.emission import BESIDE, emit_cpp

    emit_cpp(recorded, dest, runtime)
    _say(f"{dest or recorded.folder / BESIDE}/README.md says how the program is built and run")
    return 0
