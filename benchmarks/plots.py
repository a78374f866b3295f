"""`python -m benchmarks.plots DIR`: speed over sizes, beside torch, drawn by Triton's own performance reports.

Writes a picture and a table for matmul (each type) and softmax into the folder. Needs matplotlib and pandas.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import triton.testing
import typer

from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.cases import Case

from .about import cpu_name
from .measure import OURS, checked_call, has_torch, make_place
from .rows import SHORT
from .timing import Samples, alternate

MACHINE = "machine.txt"
"""The file beside the pictures that says on which machine they were drawn."""

MATMUL_SIZES = (128, 256, 384, 512, 768, 1024, 1536, 2048)
SOFTMAX_COLUMNS = (128, 256, 512, 781, 1024, 2048, 4096, 8192)
SOFTMAX_ROWS = 1823
QUICK_SIZES = 3
RUNS = 15
TORCH = "torch"


class Speeds:
    """Both sides' work per second in units of 1e9: the median, and what quartiles of times give.

    They are sampled in turn when the first of them is asked for: what else the machine does then concerns both.
    """

    def __init__(self, case_of: Callable[[int], Case], work_of: Callable[[int], float]) -> None:
        self._case_of = case_of
        self._work_of = work_of
        self._found: dict[int, dict[str, Samples]] = {}

    def __call__(self, size: int, provider: str) -> tuple[float, float, float]:
        """The speed of the kernel or of torch at one size."""
        if size not in self._found:
            self._found[size] = self._measured(self._case_of(size))
        found = self._found[size][provider]
        low, high = found.quartiles
        scale = self._work_of(size) * 1e-9
        return scale / found.median, scale / high, scale / low

    @staticmethod
    def _measured(case: Case) -> dict[str, Samples]:
        from triton.runtime import driver

        from triton_porting_kit.kernels.torch_peers import TORCH_PEERS

        ours, arrays, _ = checked_call(case, make_place(driver.active.device))
        peer = TORCH_PEERS[case.kernel]
        out = peer(*arrays, out=None, **case.options)
        return alternate({OURS: ours, TORCH: lambda: peer(*arrays, out=out, **case.options)}, RUNS)


def _report(name: str, x: str, values: list[int], y: str, measure: Any) -> Any:
    return triton.testing.perf_report(
        triton.testing.Benchmark(
            x_names=[x],
            x_vals=values,
            line_arg="provider",
            line_vals=[OURS, TORCH],
            line_names=["the kit's CPU backend", "torch"],
            styles=[("tab:blue", "-"), ("tab:orange", "--")],
            ylabel=y,
            plot_name=name,
            args={},
            x_log=True,
        )
    )(measure)


def reports(quick: bool) -> list[Any]:
    """Triton's reports: matmul of each type, softmax."""
    last = QUICK_SIZES if quick else None

    def matmul(dtype: str) -> Any:
        speeds = Speeds(lambda n: cases.matmul_case(n, n, n, dtype, tiles=None), lambda n: 2.0 * n**3)

        def measure(n: int, provider: str) -> tuple[float, float, float]:
            return speeds(n, provider)

        return _report(f"matmul-{SHORT[dtype]}", "n", list(MATMUL_SIZES[:last]), "GFLOP/s", measure)

    rows = Speeds(
        lambda columns: cases.softmax_case(SOFTMAX_ROWS, columns, "float32"),
        lambda columns: 8.0 * SOFTMAX_ROWS * columns,
    )

    def softmax(columns: int, provider: str) -> tuple[float, float, float]:
        return rows(columns, provider)

    return [
        *(matmul(dtype) for dtype in ("float32", "bfloat16", "float16")),
        _report("softmax-fp32", "columns", list(SOFTMAX_COLUMNS[:last]), "GB/s", softmax),
    ]


def main(
    folder: Annotated[Path, typer.Argument(help="Where pictures and tables go.")],
    quick: Annotated[bool, typer.Option(help="The smallest sizes only.")] = False,
    only: Annotated[str, typer.Option(help="The plots whose names contain this.")] = "",
) -> None:
    """Draw speed over sizes. As many threads as TPK_NUM_THREADS and OMP_NUM_THREADS say."""
    if not has_torch():
        typer.echo("torch is not installed: there is nothing to draw beside the kernels", err=True)
        raise typer.Exit(2)
    folder.mkdir(parents=True, exist_ok=True)
    for report in reports(quick):
        if only in report.benchmarks.plot_name:
            report.run(print_data=True, save_path=str(folder))
    (folder / MACHINE).write_text(f"Machine: {cpu_name()}, {date.today()}.\n", encoding="utf-8")
    (folder / "results.html").unlink(missing_ok=True)  # a page of nothing but the pictures


if __name__ == "__main__":
    typer.run(main)
