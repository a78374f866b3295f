"""The commands `tpk capture` and `tpk replay`; `triton_porting_kit.replay` implements them."""

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
        str, typer.Option(metavar="PATTERN", help="Record only kernels with such names: `matmul_*`.")
    ] = "*",
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Record no more than N launches in DIR.")
    ] = None,
) -> None:
    """Run a Python program and record its kernel launches: their arguments, and memory before and after.

    Works for backends whose driver is made with the kit. The inputs of a launch are on disk before it starts, so a
    launch that crashes the process or the chip is recorded too. Options go before SCRIPT; everything after it is passed
    to the program. The exit status is the program's.

    docs/debugging.md describes what is recorded. `TPK_CAPTURE=DIR` in the environment does the same for any program.
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
        # A program that failed has said why: perhaps it did not come to a launch.
        hint = "" if status else "; only drivers made with the kit record launches"
        typer.echo(f"tpk: no launch of a kernel {kernel!r} was recorded{hint}", err=True)
    if status < 0:
        typer.echo(f"tpk: {script} was killed by {signal.Signals(-status).name}", err=True)
    raise typer.Exit(status if status >= 0 else 128 - status)


def _say(text: str, *, err: bool = False) -> None:
    """Print text that may come from the recorded launch, with control characters escaped."""
    typer.echo(shown(text), err=err)


def described(manifest: Manifest) -> str:
    """A one-line description of a recorded launch."""
    size = sum(buffer.size for buffer in manifest.buffers)
    ended = {
        "complete": "",
        "failed": f"; it raised {(manifest.error or {}).get('type')}",
        "launched": "; the process ended during it",
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
        typer.Option(metavar="NAME", help="Run it on a device of this backend. Default: the recorded one."),
    ] = "",
    repeat: Annotated[int, typer.Option(metavar="N", min=1, help="Run the launch N times and time it.")] = 1,
    dump: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write the memory after the launch to this folder.")
    ] = None,
    emit_cpp: Annotated[
        bool,
        typer.Option("--emit-cpp", help="Do not run it. Write a C++ program that runs it without Python."),
    ] = False,
    dest: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Folder of the program. Default: DIR/cpp.")
    ] = None,
    runtime: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The runtime that the program calls: host, vnpu, or MODULE:NAME. Default: the driver's.",
        ),
    ] = "",
) -> None:
    """Run a recorded launch again on a device and compare the resulting memory with the recorded one, bit by bit.

    The exit status is 0 if it ends as recorded, and 1 if not. A recorded launch contains code that runs with your
    permissions: replay only launches that you recorded yourself. Folders that others can write to are refused.
    """
    from triton_porting_kit.errors import InsecureCacheError
    from triton_porting_kit.replay import read

    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    if (dest or runtime) and not emit_cpp:
        raise UserError("--dest and --runtime require --emit-cpp")
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
    for line in _outcome(manifest, result):
        _say(line)
    return 0 if result.agrees(manifest) else 1


def _outcome(manifest: Manifest, result: Result) -> list[str]:
    """The lines that describe how a replay ended."""
    lines = [f"time: {result.timing}"] if result.timing else []
    if result.error is not None:
        kind = type(result.error).__name__
        same = "as recorded" if result.agrees(manifest) else f"but {_recorded_end(manifest)}"
        return [*lines, f"run {result.run} raised {kind}, {same}: {result.error}"]
    if result.differences:
        return [*lines, *map(str, result.differences), f"run {result.run} differs from the recording"]
    if manifest.state == "failed":
        return [*lines, f"the launch succeeded, but {_recorded_end(manifest)}"]
    if manifest.state == "launched":
        return [
            *lines,
            "the launch returned; there is no recorded memory to compare with, because "
            + _recorded_end(manifest),
        ]
    runs = "" if result.run == 1 else f", in all {result.run} runs"
    return [*lines, f"all memory is identical to the recording, bit for bit{runs}"]


def _recorded_end(manifest: Manifest) -> str:
    if manifest.state == "failed":
        return f"the recorded launch raised {(manifest.error or {}).get('type')}"
    if manifest.state == "complete":
        return "the recorded launch succeeded"
    return "the recorded process ended during the launch"


def _emit(recorded: Capture, dest: Path | None, runtime: str) -> int:
    from triton_porting_kit.replay.emission import BESIDE, emit_cpp

    emit_cpp(recorded, dest, runtime)
    _say(f"{dest or recorded.folder / BESIDE}/README.md describes how to build and run the program")
    return 0
