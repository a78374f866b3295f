"""`tpk fit`: whether a kernel's tiles fit a chip's memories, without generating code."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from triton_porting_kit.cli import kernel_file, specialization
from triton_porting_kit.cli.compile import chip_named

EPILOG = """Examples:

tpk fit matmul.py:matmul_kernel -s "*fp16, *fp16, *fp16, i32, i32, i32" -c BLOCK_M=256,BLOCK_N=256,BLOCK_K=64

tpk fit matmul.py:matmul_kernel -s "*fp16, *fp16, *fp16, i32, i32, i32" --chip mychip.toml   (an autotuned kernel)
"""
MOST_TRIED = 40
"""Smaller tiles to try before giving up."""


def fit(
    kernel: Annotated[
        str, typer.Argument(metavar="FILE:KERNEL", help="A Python file or module, and a kernel in it.")
    ],
    signature: Annotated[
        str, typer.Option("--signature", "-s", help="Types of the arguments, as for `tpk compile`.")
    ] = "",
    constants: Annotated[
        list[str] | None,
        typer.Option(
            "--constants",
            "-c",
            metavar="NAME=VALUE,...",
            help="Values of constexpr arguments. Default: each configuration of the kernel's autotuner.",
        ),
    ] = None,
    chip: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="A chip that comes with the kit, or its description.")
    ] = "n1",
    stages: Annotated[int, typer.Option(min=1, help="`num_stages`, where no configuration says it.")] = 2,
) -> None:
    """Say whether a kernel's tiles fit a chip's memories.

    Prints the table of the buffers: what each holds, the line of the kernel, bytes, memory, address, and when it is in
    use. If the tiles do not fit, it says what is missing, and the nearest tile sizes that fit. The exit status is 0 if
    the kernel fits, with one of its configurations.
    """
    raise typer.Exit(run_fit(kernel, signature, tuple(constants or ()), chip, stages))


def run_fit(reference: str, signature: str, constants: tuple[str, ...], chip: str, stages: int) -> int:
    """`tpk fit` with these arguments. Returns the exit status."""
    place, name = kernel_file.split_reference(reference)
    module = kernel_file.load(place)
    kernel = kernel_file.find_kernel(module, name, place)
    configurations = _configurations(getattr(module, name, None), stages)
    if constants or not configurations:
        fitting = _Fitting(kernel, signature, chip, module)
        given = specialization.pairs(constants, "the constant")
        found = fitting.fit(given, stages)
        typer.echo(found.text)
        if not found.fits and (smaller := fitting.nearest(given, stages)) is not None:
            typer.echo(f"the nearest tile sizes that fit: {_said(smaller)}")
        return 0 if found.fits else 1
    fitting = _Fitting(kernel, signature, chip, module)
    results = []
    for values, count in configurations:
        found = fitting.fit(values, count)
        results.append(found.fits)
        first = found.text.splitlines()[0]
        typer.echo(f"{'fits' if found.fits else 'no  '}  {_said(values)}, num_stages={count}: {first}")
    return 0 if any(results) else 1


def _said(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _configurations(tuner: Any, stages: int) -> list[tuple[dict[str, str], int]]:
    """The constants and `num_stages` of each configuration of an autotuner."""
    return [
        ({name: repr(value) for name, value in config.kwargs.items()}, config.num_stages or stages)
        for config in getattr(tuner, "configs", ())
    ]


class _Fitting:
    """Plans one kernel with different constants."""

    def __init__(self, kernel: Any, signature: str, chip: str, module: Any) -> None:
        self._kernel, self._signature, self._module = kernel, signature, module
        self._chip = chip_named(chip)

    def fit(self, constants: Mapping[str, str], stages: int) -> Any:
        """The `Fit` with these constants."""
        from triton_porting_kit.cli.compile import structured
        from triton_porting_kit.compiler.fitting import fit

        given = tuple(f"{name}={value}" for name, value in constants.items())
        return fit(
            structured(self._kernel, self._signature, given, self._module), self._chip, num_stages=stages
        )

    def nearest(self, constants: Mapping[str, str], stages: int) -> dict[str, str] | None:
        """The constants with the fewest halvings of tile sizes that fit."""
        sizes = {
            name: int(value) for name, value in constants.items() if value.isdigit() and _is_tile(int(value))
        }
        for halved in itertools.islice(_halvings(sizes), MOST_TRIED):
            smaller = dict(constants) | {name: str(size) for name, size in halved.items()}
            if self.fit(smaller, stages).fits:
                return {name: smaller[name] for name in sizes}
        return None


def _is_tile(value: int) -> bool:
    return value >= 32 and value & (value - 1) == 0


def _halvings(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Smaller sizes, those with the fewest halvings first, and of these the most balanced."""
    names = list(sizes)
    for count in range(1, 12):
        ways = [way for way in itertools.product(range(count + 1), repeat=len(names)) if sum(way) == count]
        for way in sorted(ways, key=max):
            halved = {name: sizes[name] >> times for name, times in zip(names, way, strict=True)}
            if all(size >= 16 for size in halved.values()):
                yield halved
