"""`tpk demo`: real kernels on the active backend, checked against float64 NumPy and timed, as are NumPy and torch."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from triton_porting_kit.cli import training
from triton_porting_kit.cli.requirements import TORCH
from triton_porting_kit.kernels import cases, peers
from triton_porting_kit.kernels.cases import Case
from triton_porting_kit.kernels.places import DevicePlace

#: A time is the median of this many calls, or of fewer if they exceed the budget.
RUNS = 7
BUDGET_SECONDS = 0.3

DEMO_CASES = (
    cases.vector_add_case(1823, "float32"),
    cases.vector_add_case(1 << 22, "float32"),
    cases.vector_add_case(1 << 20, "float16"),
    cases.vector_add_case(1 << 20, "bfloat16"),
    cases.softmax_case(17, 781, "float32"),
    cases.softmax_case(1823, 781, "float32"),
    cases.softmax_case(1024, 1024, "float16"),
    cases.softmax_case(1024, 1024, "bfloat16"),
    cases.matmul_case(17, 781, 1823, "float32"),
    cases.matmul_case(512, 512, 512, "float32"),
    cases.matmul_case(512, 512, 512, "float32", tiles=None),
    cases.matmul_case(256, 256, 256, "float16", leaky_relu=True),
    cases.matmul_case(512, 512, 512, "bfloat16"),
    cases.giou_case(17, 1823, "float32"),
    cases.giou_case(256, 1024, "float32"),
    cases.giou_case(256, 1024, "float16"),
    cases.giou_case(256, 1024, "bfloat16"),
    cases.layer_norm_case(1823, 781, "float32"),
    cases.layer_norm_backward_case(1823, 781, "float32"),
)


def median_seconds(call: Callable[[], Any]) -> float:
    """Median wall time of one call in seconds, after one call to warm up."""
    call()
    samples: list[float] = []
    while len(samples) < RUNS and (sum(samples) < BUDGET_SECONDS or not samples):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def show_seconds(seconds: float | None) -> str:
    """A duration in ms or µs; a dash for None."""
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def run_case(case: Case, place: DevicePlace) -> tuple[list[str], bool]:
    """One row of the table, and whether every result is within its tolerance."""
    operands = case.operands()
    arrays = [place.put(operand) for operand in operands]
    outputs = case.launch(arrays)
    deviations = case.compare([place.get(output) for output in outputs], operands)
    # The row shows the result with the largest error relative to its tolerance.
    worst = max(deviations, key=lambda deviation: deviation.severity)
    ok = all(deviation.ok for deviation in deviations)

    def ours() -> None:
        case.launch(arrays, outputs[0])
        place.synchronize()

    calls = ours, peers.numpy_call(case, operands), peers.torch_call(case, operands)
    times = [show_seconds(median_seconds(call) if call else None) for call in calls]
    verdict = "[green]ok[/]" if ok else "[bold red]FAIL[/]"
    return [f"{worst.max_error:.1e}", str(worst.tolerance), *times, verdict], ok


def run_demo(console: Console | None = None) -> int:
    """Run every case on the active device, then train on its torch device, and return the exit status.

    The status is 0 only if all results are within tolerance. A kernel that cannot be compiled or launched counts as
    failed; its error is printed after the table. So does training. Without torch, or without a torch device of the
    backend, nothing is trained.
    """
    from triton.runtime import driver

    # If the output is not a terminal (a log, a pipe), rich would limit the table to 80 columns.
    console = console or Console(width=None if sys.stdout.isatty() else 132)
    device = driver.active.device
    place = DevicePlace(device)
    table = Table(title=f"Triton kernels on {escape(device.properties().name)}", box=SIMPLE)
    for heading in ("kernel", "shape", "dtype"):
        table.add_column(heading, no_wrap=True)
    for heading in ("max error", "tolerance (r: reference)", "ours", "NumPy", "torch", ""):
        table.add_column(heading, justify="right", no_wrap=not heading.startswith("tolerance"))

    errors: list[str] = []
    failed = 0
    for case in DEMO_CASES:
        try:
            cells, ok = run_case(case, place)
        except Exception as error:
            cells, ok = ["-"] * 5 + ["[bold red]FAIL[/]"], False
            errors.append(f"{case.id}: {type(error).__name__}: {error}")
        failed += not ok
        name = f"{case.kernel} ({case.note.replace('_', ' ')})" if case.note else case.kernel
        table.add_row(name, case.shape, case.dtype, *cells)
    console.print(table)
    for message in errors:
        console.print(message, style="red", markup=False)
    total = len(DEMO_CASES)
    console.print(f"{total - failed} of {total} within tolerance")
    return 1 if not train_there(console, driver.active) or failed else 0


def train_there(console: Console, driver: Any) -> bool:
    """Train on the torch device of a backend; returns whether that went well, or there is none."""
    if find_spec("torch") is None:
        console.print(
            f"no model is trained: torch is not installed (pip install torch=={TORCH})", highlight=False
        )
        return True
    device = training.torch_device_of(driver)
    if device is None:
        return True
    try:
        found = training.train(device)
    except Exception as error:
        console.print(f"training: {type(error).__name__}: {error}", style="red", markup=False)
        return False
    training.show(console, found)
    return found.ok
