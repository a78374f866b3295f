"""The command `tpk profile`: what the units of a simulated chip did while a program ran."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triton_porting_kit.cli.captures import Arguments, Script
from triton_porting_kit.cli.compile import chip_named
from triton_porting_kit.cli.errors import UserError

if TYPE_CHECKING:
    from triton_porting_kit.chips.trace import Trace

EPILOG = """Examples:

TRITON_DEFAULT_BACKEND=acme tpk profile program.py

tpk profile --chip n1 program.py

tpk profile --chip mine.toml --dest profiles program.py --steps 10
"""


def profile(
    script: Script,
    arguments: Arguments = None,
    chip: Annotated[
        str,
        typer.Option(
            metavar="CHIP",
            help="A chip that comes with the kit, or the TOML file of one, for a backend that has none of its own.",
        ),
    ] = "",
    dest: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the page and the trace.")] = Path(
        "profile"
    ),
) -> None:
    """Run a Python program on a simulated chip with on-chip memory, and write what its units did.

    Works for backends whose driver opens the virtual NPU. Writes `trace.json`, which https://ui.perfetto.dev opens
    with a row for each unit of each core, and `profile.html`, a page with a table by kernel, a roofline plot and a
    timeline of each launch, which needs nothing else. `KERNEL.svg` is the timeline of a kernel's longest launch. Prints
    the table. All times are those of the chip's model (docs/npu.md).

    Options go before SCRIPT; everything after it is passed to the program. The exit status is the program's.
    """
    from triton_porting_kit.chips import CHIPS
    from triton_porting_kit.chips.page import page
    from triton_porting_kit.chips.perfetto import perfetto
    from triton_porting_kit.chips.timeline import longest, timeline
    from triton_porting_kit.chips.trace import read
    from triton_porting_kit.errors import TraceError

    if not script.is_file():
        raise UserError(f"there is no file {script}")
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "trace")
        environment = {**os.environ, **_description(chip, Path(folder)), "VNPU_TRACE": str(written)}
        status = subprocess.run(
            [sys.executable, str(script), *(arguments or [])], env=environment, check=False
        ).returncode
        if status < 0:
            typer.echo(f"tpk: {script} was killed by {signal.Signals(-status).name}", err=True)
        if not written.is_file():
            raise UserError(
                "the program opened no virtual NPU with a description, so there is nothing to write; use a backend "
                f"for chips with on-chip memory, or name a chip: --chip {', --chip '.join(CHIPS)}, or a file"
            )
        try:
            trace = read(written)
        except TraceError as error:
            raise UserError(str(error)) from None
    dest.mkdir(parents=True, exist_ok=True)
    (dest / "trace.json").write_text(perfetto(trace))
    (dest / "profile.html").write_text(page(trace))
    written_files = ["profile.html", "trace.json"]
    for kernel, launch in longest(trace).items():
        written_files.append(f"{kernel}.svg")
        (dest / written_files[-1]).write_text(timeline(trace, launch))
    _print(trace)
    typer.echo(", ".join(str(dest / name) for name in written_files))
    raise typer.Exit(status if status >= 0 else 128 - status)


def _description(chip: str, folder: Path) -> dict[str, str]:
    """The environment of a chip: nothing if none is named, as the backend may have its own."""
    if not chip:
        return {}
    (folder / "description").write_text(chip_named(chip).text)
    return {"VNPU_DESCRIPTION": str(folder / "description")}


_COLUMNS = (
    "runs",
    "us",
    "matrix",
    "core",
    "DMA",
    "bandwidth",
    "overlap",
    "moved",
    "needed",
    "cores wait for",
)


def _print(trace: Trace) -> None:
    """Print a table by kernel, or where it would be wider than the terminal, lines for each kernel."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.measure import Measurement
    from rich.padding import Padding
    from rich.table import Table

    from triton_porting_kit.chips.trace import by_kernel

    title = f"on {trace.chip}, by the chip's clock"
    table = Table("kernel", title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name == _COLUMNS[-1] else "right")
    rows = []
    for each in by_kernel(trace):
        shares = (each.matrix, each.core, each.dma, each.bandwidth, each.overlap)
        rows.append(
            (
                each.kernel,
                str(each.launches),
                f"{each.milliseconds * 1e3:.2f}",
                *(f"{share:.1%}" for share in shares),
                *(f"{count / 1e3:,.1f} kB" for count in (each.global_bytes, each.needed_bytes)),
                f"{each.stall}, {each.stalled:.0%}" if each.stall else "nothing",
            )
        )
        table.add_row(*rows[-1])
    console = Console()
    if Measurement.get(console, console.options.update(width=1000), table).maximum <= console.width:
        console.print(table)
        return
    console.print(title, highlight=False)
    for kernel, *values in rows:
        text = "; ".join(f"{name} {value}" for name, value in zip(_COLUMNS, values, strict=True))
        console.print(kernel, highlight=False)
        console.print(Padding(text, (0, 0, 0, 2)), highlight=False)
