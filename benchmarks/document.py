"""`python -m benchmarks.document`: write docs/performance.md from a file of results. Nobody types figures into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from .compiling import FRONT_END, STAGES
from .figures import Figure, Results
from .measure import OURS
from .report import bar_text, verdict
from .rows import COMPILED, EAGER
from .timing import LEAST_RUNS
from .worker import RUNS

ROOT = Path(__file__).resolve().parents[1]
RESULTS, DOCUMENT, PLOTS = (
    ROOT / "benchmarks" / "results.json",
    ROOT / "docs" / "performance.md",
    ROOT / "docs" / "performance",
)

HEAD = f"""# Performance of the CPU backend

This page is written by `python -m benchmarks.document` from `benchmarks/results.json`, which `python -m benchmarks.run`
wrote. `make performance` does both, and draws the plots. Do not edit it: edit `benchmarks/document.py`.

Every kernel is in the form that a tutorial gives it, with nothing in it that is for a CPU. Its result is checked
against a reference in float64 before it is timed. Ours and the peer's calls are sampled in turn, on the same arrays,
the peer writing into an output that is there already where its library can. A sample lasts ten milliseconds or
more; there are {RUNS} of each in a run, or as many as a minute allows, but at least {LEAST_RUNS}. A ratio is the peer's
median time over ours: above 1 the kit is faster. Kernels that tune themselves use the best of their
configurations. The quartiles are those of ratios of samples that were neighbours in time.
"""


def machine_section(results: Results) -> Iterator[str]:
    """What the figures depend on."""
    about = results.about
    machine = about["machine"]
    yield "## Machine\n"
    if about.get("note"):
        yield f"**{about['note']}**\n"
    yield f"Measured by `{about['command']}`.\n"
    if "others" in about:
        yield f"What that leaves out: by `{about['others']['command']}` on {about['others']['date']}.\n"
    releases = ", ".join(f"{name} {release}" for name, release in about["versions"].items() if release)
    yield from table(
        ("", ""),
        (
            ("processor", f"{machine['cpu']}, {machine['device'].get('arch', machine['host'])}"),
            ("processors for this process", str(machine["cpus"])),
            ("other load when it ended", " ".join(map(str, machine["load"]))),
            ("date", about["date"]),
            ("releases", releases),
            (
                "separate runs",
                f"{about['rounds']}{', of which medians are shown' if about['rounds'] > 1 else ''}",
            ),
        ),
    )


def table(head: Iterable[str], body: Iterable[Iterable[str]]) -> Iterator[str]:
    """Lines of a table in Markdown, and an empty one."""
    head, body = list(head), list(body)
    if not body:
        return
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in body:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _threads(results: Results) -> list[int]:
    return sorted({figure.threads for figure in results.figures if figure.threads})


def _marked(figure: Figure | None) -> str:
    """A figure with its quartiles; bold where it misses its bar."""
    if figure is None:
        return ""
    text = f"{figure.text()} ({figure.text(figure.low)} … {figure.text(figure.high)})"
    return f"**{text}**" if figure.met is False else text


def kernel_section(results: Results) -> Iterator[str]:
    """Each row with its bars."""
    yield "## Kernels\n"
    yield "Ratios with their quartiles; **bold** where the bar is missed. Rows with AVX2 limit everyone to AVX2.\n"
    threads = _threads(results)
    names = list(dict.fromkeys(figure.name for figure in results.group("kernels")))
    rows = []
    for name in names:
        for peer in (EAGER, COMPILED):
            column = f"{peer} / {OURS}"
            found = {count: results.find("kernels", name, column, count) for count in threads}
            if not any(found.values()):
                continue
            bars = [f"{f.bar:g}" if f and f.bar is not None else "-" for f in found.values()]
            times = [results.find("kernels", name, OURS, count) for count in threads]
            rows.append(
                [
                    name,
                    peer,
                    " / ".join(bars),
                    *(_marked(figure) for figure in found.values()),
                    " / ".join(time.text() if time else "-" for time in times),
                ]
            )
    counts = " / ".join(f"{count}" for count in threads)
    heads = [f"{count} thread{'s' * (count > 1)}" for count in threads]
    yield from table(["work", "peer", f"bar ({counts})", *heads, f"our time ({counts})"], rows)


def limits_section(results: Results) -> Iterator[str]:
    """The roof, and how near each kernel is to it."""
    yield "## What limits each kernel\n"
    yield (
        "The roof is measured on the same machine by loops made for nothing else (`benchmarks/probe.py`): a triad\n"
        "over as many bytes as the kernel touches, and multiply-adds in registers. A kernel cannot be faster than the\n"
        "bytes that it must move at that bandwidth, or the operations that it must do at that peak, whichever takes\n"
        "longer. float16 is held to float32's peak, which it is widened to. Where the fraction is small though\n"
        "bandwidth is the limit, other arithmetic takes the time, which the roof does not count: exponentials, erf,\n"
        "divisions, comparisons. Where torch reaches nearly all of the roof, no kernel can be much faster than it is.\n"
    )
    threads = _threads(results)
    heads = [f"{count} thread{'s' * (count > 1)}" for count in threads]
    machine = list(dict.fromkeys((f.name, f.column) for f in results.group("machine")))
    yield from table(
        ("machine", *heads),
        (
            (
                name,
                *(f.text() if (f := results.find("machine", name, column, n)) else "" for n in threads),
            )
            for name, column in machine
        ),
    )
    rows = []
    for name in dict.fromkeys(f.name for f in results.group("kernels") if f.column == "of the roof"):
        found = [results.find("kernels", name, "of the roof", count) for count in threads]
        limit = next(f.note for f in found if f)
        ratios = [results.find("kernels", name, f"{EAGER} / {OURS}", count) for count in threads]
        theirs = [
            f"{100 * f.value / r.value:.0f}%" if f and r else "" for f, r in zip(found, ratios, strict=True)
        ]
        rows.append([name, limit, *(f"{100 * f.value:.0f}%" if f else "" for f in found), " / ".join(theirs)])
    heads = [f"of the roof, {head}" for head in heads]
    yield from table(("kernel", "limit", *heads, f"{EAGER} ({' / '.join(map(str, threads))})"), rows)


def compile_section(results: Results) -> Iterator[str]:
    """Where the time goes before a kernel runs."""
    figures = results.group("compile")
    if not figures:
        return
    yield "## Compiling\n"
    yield (
        "Cold, in process, nothing cached. The front end is Triton's own, from Python to TTIR; the stages are ours,\n"
        "the first of them with Triton's passes on TTIR. A warm start finds the kernel in the cache on disk: beyond\n"
        "Triton's own lookup it binds the arguments, links the object, and makes the launcher.\n"
    )
    stages = list(dict.fromkeys(f.column for f in figures if f.column.startswith("stage ")))
    names = list(dict.fromkeys(f.name for f in figures if f.column == FRONT_END))
    find = {(f.name, f.column): f for f in figures}
    ratio, warm = "stages / front end", "warm start beyond the lookup, per kernel"
    yield from table(
        ("kernel", FRONT_END, STAGES, *(s.removeprefix("stage ") for s in stages), ratio, "warm start"),
        (
            (
                name,
                *(
                    f.text() if (f := find.get((name, column))) else ""
                    for column in (FRONT_END, STAGES, *stages)
                ),
                *(_marked(find.get((name, column))) for column in (ratio, warm)),
            )
            for name in names
        ),
    )
    bars = {f.column: bar_text(f) for f in figures if f.bar is not None}
    yield "Bars: " + "; ".join(f"{column} {bar}" for column, bar in bars.items()) + ".\n"
    for figure in figures:
        if figure.name not in names:
            yield f"Stages of {figure.name}: {_marked(figure)}, the bar is {bar_text(figure)}.\n"


def other_section(results: Results) -> Iterator[str]:
    """Every other figure with a bar."""
    sections = (
        ("launch", "Launching"),
        ("scaling", "Two threads"),
        ("tiles", "Tiles of a matmul"),
        ("after torch", "Right after a call of torch"),
        ("memory", "Memory"),
        ("interpreter", "Triton's interpreter"),
    )
    texts = {
        "launch": "A kernel with four arguments that does nothing.",
        "tiles": "Every tile of 32, 64 and 128 in each direction, against the best of them.",
        "after torch": (
            "A call of ours right after an addition of torch, whose threads may still hold the cores, beside one\n"
            "right after the same addition of ours."
        ),
        "memory": "How far a process grows beyond operands and result, the scratch of all threads included.",
    }
    for group, title in sections:
        figures = [f for f in results.group(group) if group != "tiles" or f.bar is not None]
        if not figures:
            continue
        yield f"## {title}\n"
        if group in texts:
            yield texts[group] + "\n"
        yield from table(
            ("what", "figure of it", "threads", "median (quartiles)", "bar", ""),
            (
                (
                    f.name,
                    f.column,
                    str(f.threads or ""),
                    _marked(f) if f.low != f.high else f.text(),
                    bar_text(f),
                    verdict(f) + (f" ({f.note})" if f.note else ""),
                )
                for f in figures
            ),
        )


def plot_section(plots: Iterable[str]) -> Iterator[str]:
    """The pictures that there are."""
    plots = sorted(plots)
    if not plots:
        return
    yield "## Over sizes\n"
    yield (
        "Drawn by `triton.testing.perf_report` (`python -m benchmarks.plots`), with as many threads as the process\n"
        "has processors; the band is between quartiles.\n"
    )
    for name in plots:
        yield f"![{Path(name).stem}](performance/{name})\n"


INNER_LOOPS = """## The inner loops

`tpk compile` prints the code that the figures are of; no kernel runs for it. A product of bf16 on a CPU with AVX-512:

```sh
tpk compile kernels/matmul.py:matmul_kernel --emit asm --cpu sapphirerapids --features=-amx-tile \\
  -s "a_ptr=*bf16:16, b_ptr=*bf16:16, c_ptr=*bf16:16, M=i32:16, N=i32:16, K=i32:16, stride_am=i32:16, stride_ak=1, \\
      stride_bk=i32:16, stride_bn=1, stride_cm=i32:16, stride_cn=1" \\
  -c ACCUMULATOR=tl.float32,LEAKY_RELU=False,BLOCK_M=128,BLOCK_N=128,BLOCK_K=64,GROUP_M=8
```

The loop with the most `vdpbf16ps` is where the product spends its time. Sixteen sums stay in registers. Each step
along K reads four vectors of B, which was packed, and broadcasts a pair of A for each of four rows from where the
matrix lies. After sixteen of them the loop around asks for what comes next: `prefetcht0` for the next four rows of A,
`prefetcht1` for what is packed next of B. Several `BLOCK_K` go through the loop before the sums are stored. `*fp32`
shows the same with `vfmadd231ps`, `*i8` with `vpdpbusd`, `--cpu haswell` with half the registers; without `--features`,
the loop with four `tdpbf16ps` multiplies two by two tiles in matrix registers.

- `kernels/gelu.py:gelu_residual_kernel`: the `vpermps` look up the coefficients of erf by the interval of its argument.
- `kernels/layer_norm.py:layer_norm_forward_kernel`: the `prefetcht0` in the last loop asks for the row of the next
  program.
- `kernels/vector_add.py:vector_add_kernel`: the loop with `vmovntps` serves launches that write more than caches hold.
"""

TAIL = """## To repeat this

```sh
make performance                                        # the whole page: three runs, on an idle machine
python -m benchmarks.run --only 'softmax|matmul fp32'   # some rows, with their bars
python -m benchmarks.compare old.json new.json          # what got worse beyond the noise; status 1 if anything
make bench-counts                                       # instructions of compiling and launching, by callgrind
```
"""


def document(results: Results, plots: Iterable[str]) -> str:
    """The whole page."""
    with_bars = [figure for figure in results.figures if figure.met is not None]
    met = sum(bool(figure.met) for figure in with_bars)
    parts: list[str] = [HEAD, f"{met} of {len(with_bars)} bars are met.\n"]
    for section in (machine_section, kernel_section, limits_section, compile_section, other_section):
        parts += section(results)
    parts += plot_section(plots)
    parts += [INNER_LOOPS, TAIL]
    return "\n".join(parts)


def pictures(folder: Path) -> list[str]:
    """The names of the plots in a folder."""
    return [path.name for path in folder.glob("*.png")]


def main(
    results: Annotated[Path, typer.Argument(help="Results of benchmarks.run.")] = RESULTS,
    out: Annotated[Path, typer.Argument(help="The page to write.")] = DOCUMENT,
    plots: Annotated[Path, typer.Option(help="The folder of plots, beside the page.")] = PLOTS,
) -> None:
    """Write the page about performance from results."""
    try:
        found: Any = Results.read(results)
    except ValueError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    out.write_text(document(found, pictures(plots)), encoding="utf-8")
    typer.echo(f"wrote {out}")


if __name__ == "__main__":
    typer.run(main)
