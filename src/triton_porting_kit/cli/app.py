"""The commands and their options. Each command is implemented in its own module, which is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import triton_porting_kit
from triton_porting_kit.cli import (
    captures,
    compare,
    conforming,
    fitting,
    interpreting,
    judging,
    porting,
    profiling,
    published,
    report,
    running,
)

app = typer.Typer(
    name="tpk",
    help="Triton Porting Kit: bring Triton to a new chip, and inspect every stage on the way.",
    epilog="Start with `tpk doctor`, which checks whether kernels can run here, then run `tpk demo`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",  # Joins the lines of a paragraph, which the default keeps.
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(report.app)
app.command()(report.verify)
app.command(epilog=judging.EPILOG)(judging.judge)
app.command(epilog=porting.NEW_EPILOG)(porting.new)
app.command()(porting.update)
app.command(epilog=running.EPILOG, context_settings={"allow_interspersed_args": False})(running.run)
app.command(context_settings={"allow_interspersed_args": False})(captures.capture)
app.command()(captures.replay)
app.command(epilog=profiling.EPILOG, context_settings={"allow_interspersed_args": False})(profiling.profile)
app.command(epilog=interpreting.EPILOG)(interpreting.interpret)
app.command(epilog=compare.EPILOG)(compare.compare)
app.command(epilog=fitting.EPILOG)(fitting.fit)
app.command(epilog=conforming.EPILOG)(conforming.conform)
app.command(epilog=published.EPILOG)(published.public)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tpk {triton_porting_kit.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the release and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check the installation, and report what is missing and how to fix it.

    Checks Triton, MLIR, LLVM and the other libraries, the processor, the compile cache and the registered
    backends, then compiles and runs a small kernel. The exit status is 0 only if that kernel ran.
    """
    from triton_porting_kit.cli.doctor import run_doctor

    raise typer.Exit(run_doctor(as_json=json))


@app.command()
def demo() -> None:
    """Run real kernels on the active backend, check them against float64 NumPy, and time them.

    Prints the shape, type, largest error and time of each kernel, and the times of NumPy and, if installed, torch.
    The exit status is 0 only if every error is within its tolerance.
    """
    try:
        import triton.runtime  # noqa: F401
    except Exception as error:
        from triton_porting_kit.errors import ToolchainError

        raise ToolchainError(f"Triton cannot be imported ({error}); `tpk doctor` shows what to do") from error
    from triton_porting_kit.cli.demo import run_demo

    raise typer.Exit(run_demo())


_COMPILE_EPILOG = """Examples:

tpk compile add.py:add_kernel -s "*fp32, *fp32, *fp32, i32" -c BLOCK=1024 --emit structured

tpk compile add.py:add_kernel -s "x=*fp32:16, y=*fp32:16, out=*fp32:16, n=i32" -c BLOCK=1024 --emit asm --cpu haswell

tpk compile add.py:add_kernel -s "*fp32, *fp32, *fp32, i32" -c BLOCK=1024 --backend amdgpu --arch gfx942 --emit amdgcn

tpk compile triton_porting_kit.kernels.softmax            (lists the kernels of the module)
"""


@app.command("compile", epilog=_COMPILE_EPILOG)
def compile_kernel(
    kernel: Annotated[
        str,
        typer.Argument(
            metavar="FILE:KERNEL", help="A Python file or module, and the name of a kernel in it."
        ),
    ],
    signature: Annotated[
        str,
        typer.Option(
            "--signature",
            "-s",
            help="Types of the arguments, by name (`x=*fp32, n=i32`) or in order (`*fp32, i32, 1024`). "
            "`:16` after a type declares a multiple of 16, `:2g` a pointer to less than 2 GiB of memory.",
        ),
    ] = "",
    constants: Annotated[
        list[str] | None,
        typer.Option(
            "--constants",
            "-c",
            metavar="NAME=VALUE,...",
            help="Values of constexpr arguments: Python literals, `tl.` types, or names in the file.",
        ),
    ] = None,
    emit: Annotated[
        str,
        typer.Option(
            help="The stage to print. CPU: source, ttir, structured, loops, llir, asm, obj, cpp, c, opencl or linalg. "
            "AMD GPUs: source, ttir, ttgir, llir, amdgcn or hsaco."
        ),
    ] = "ttir",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="A compile option, such as num_warps=4."),
    ] = None,
    backend: Annotated[str, typer.Option(help="The backend that compiles.")] = "cpu",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="BACKEND:ARCH:WARP",
            help="The exact target, if the device is absent: hip:gfx942:64.",
        ),
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option(help="The architecture, if the device is absent: gfx942 for the backend amdgpu."),
    ] = None,
    cpu: Annotated[
        str | None,
        typer.Option(help="Compile for this CPU, by LLVM's name: haswell, neoverse-v1."),
    ] = None,
    features: Annotated[
        str, typer.Option(help="LLVM features to add to or remove from the CPU's: `+avx2,-avx512f`.")
    ] = "",
    convention: Annotated[
        str,
        typer.Option(
            help="With `--emit linalg`: what the next compiler expects: triton-shared, ascend, iree or iree-rocm."
        ),
    ] = "triton-shared",
    chip: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE", help="Compile for a chip with on-chip memory: n1, or its description."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="With --chip and --emit placed: draw where the buffers are."),
    ] = None,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="With --chip or --emit linalg: print which part of the multiply-adds and bytes named operations do.",
        ),
    ] = False,
) -> None:
    """Print a stage of a kernel's compilation without running the kernel.

    Stages of the CPU: source (Triton's IR before any pass), ttir (after Triton's own passes), structured
    (tiles with base pointers, strides and bounds), loops (explicit loops over them), llir (LLVM IR), asm and
    obj (machine code, as text and as the cached object), cpp, c and opencl (the loops as C++, C and OpenCL C, for
    chips with such a compiler), and linalg (upstream MLIR dialects only, for compilers that start from linalg).
    With --chip, tiles (tiles in buffers of local memory) and placed (with addresses) follow structured.
    Stages of the backend amdgpu: source, ttir, ttgir (with layouts), llir, amdgcn (assembly) and
    hsaco (the code object that HIP loads).
    """
    from triton_porting_kit.cli.compile import Request, run_compile

    run_compile(
        Request(
            kernel=kernel,
            signature=signature,
            constants=tuple(constants or ()),
            options=tuple(option or ()),
            emit=emit,
            output=output,
            backend=backend,
            target=target,
            arch=arch,
            cpu=cpu,
            features=features,
            convention=convention,
            chip=chip,
            picture=picture,
            summary=summary,
        )
    )


@app.command()
def status(
    repo: Annotated[
        Path, typer.Option(metavar="DIR", help="The repository of a backend. Default: the current folder.")
    ] = Path("."),
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The report of the last `tpk conform`. Default: conformance-report in the repository.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the parts as JSON.")] = False,
) -> None:
    """Show how far the port of a backend is.

    For each hook and stage: whether it is still the virtual NPU's or the vendor's own, where it is defined, which
    conformance checks exercise it, and their last results. The exit status is 1 if a hook is missing.
    """
    from triton_porting_kit.porting.status import run_status

    raise typer.Exit(run_status(repo, report, as_json=json))


@app.command()
def fuzz(
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="The backend to test, by its name in Triton.")
    ] = "cpu",
    count: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Number of programs. Default: 200, or no limit with --minutes."
        ),
    ] = None,
    minutes: Annotated[float | None, typer.Option(metavar="M", min=0.0, help="Run for M minutes.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the programs.")] = 0,
    replay: Annotated[
        int | None, typer.Option(metavar="SEED", help="Run the program of one seed only.")
    ] = None,
    shrink: Annotated[bool, typer.Option(help="Shrink failing programs.")] = True,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for scripts of failing programs.")] = Path(
        "fuzz-failures"
    ),
    seconds: Annotated[float, typer.Option(min=1.0, help="Time limit of one program in seconds.")] = 60.0,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A conformance.toml, which declares how memory is accessed."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="Number of programs that run at the same time.")
    ] = 1,
    isa: Annotated[
        str, typer.Option(metavar="LEVELS", help="Instruction-set levels such as avx,avx2, or each.")
    ] = "",
    threads: Annotated[
        str, typer.Option(metavar="COUNTS", help="Thread counts such as 1,2. Every program runs with each.")
    ] = "",
    about: Annotated[
        str,
        typer.Option(
            metavar="KINDS",
            help="Only programs about operations, addresses, products, rows. Default: all in turn.",
        ),
    ] = "",
    against: Annotated[
        str,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="Run every program again with these compile options, such as num_stages=1, and compare the results.",
        ),
    ] = "",
) -> None:
    """Run random programs on a backend, and reduce failing ones to small scripts.

    Each program is generated from a seed, runs in its own process, and is compared with NumPy. Crashes and hangs are
    detected too. A failing program is shrunk and written as a script that needs only the backend. The exit status is 0
    only if no program failed.
    """
    from triton_porting_kit.conformance.command_fuzz import FuzzRequest, run_fuzz

    if count is None and minutes is None:
        count = 200
    raise typer.Exit(
        run_fuzz(
            FuzzRequest(
                backend=backend,
                count=count,
                minutes=minutes,
                seed=seed,
                replay=replay,
                shrink=shrink,
                out=out,
                seconds=seconds,
                profile=str(profile or ""),
                jobs=jobs,
                isa=isa,
                threads=threads,
                about=about,
                against=against,
            )
        )
    )
