"""Launching a program on a device and checking the memory afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.comparison import Comparison
from triton_porting_kit.conformance.language.work import Result
from triton_porting_kit.conformance.memory import MemoryAccess
from triton_porting_kit.conformance.stress.draws import content
from triton_porting_kit.conformance.stress.operations.base import Parameter
from triton_porting_kit.conformance.stress.oracle import Output, expected
from triton_porting_kit.conformance.stress.pages import placed
from triton_porting_kit.conformance.stress.program import Program, given_twice
from triton_porting_kit.conformance.stress.source import output_names, parameters, source_of
from triton_porting_kit.conformance.types import KINDS, Array, Kind


@dataclass(frozen=True)
class Launch:
    """A kernel, its arguments and the expected outputs, as plain data that can be sent between processes."""

    source: str
    grid: tuple[int, ...]
    warps: int
    parameters: tuple[Parameter, ...]
    names: tuple[str, ...]
    """The names of the outputs."""
    outputs: tuple[Output, ...]
    seed: int = 0
    again: tuple[int, ...] = ()
    """Indices of the outputs that are passed a second time, after all the others."""
    place: str = "zones"
    """Where the arrays are allocated: one of `program.PLACES`."""

    @classmethod
    def of(cls, program: Program, write: Callable[[Program], str] = source_of) -> Launch:
        """Create the launch of a program; `write` generates the source. Raises `Malformed` or `IllConditioned`."""
        outputs, names = expected(program), tuple(output_names(program))
        return cls(
            write(program), program.grid, program.warps, tuple(parameters(program)), names,
            tuple(outputs[name] for name in names), program.seed,
            tuple(names.index(f"A{number}") for number in given_twice(program)), program.place,
        )  # fmt: skip


def values_of(parameter: Parameter) -> Array:
    """The initial contents of an array parameter."""
    return content(KINDS[parameter.kind], parameter.size, parameter.flavour, parameter.seed)


def result_of(output: Output) -> Result:
    """The expected result of an output."""
    inexact = bool(output.errors.any())
    if inexact:
        return Result(output.kind, output.values, initial=output.initial, allowed=output.errors)
    values = output.values.astype(output.kind.host)
    return Result(output.kind, values, initial=output.initial, any_zero=True)


def arguments(
    launch: Launch, array: Callable[[Array, Kind], GuardedArray]
) -> tuple[list[Any], list[GuardedArray]]:
    """The arguments of the kernel, and the outputs among them. `array` creates an array with given contents."""
    given: list[Any] = []
    for parameter in launch.parameters:
        if parameter.value is not None:
            given.append(parameter.value)
        else:
            given.append(array(values_of(parameter), KINDS[parameter.kind]))
    outputs = [array(output.initial, output.kind) for output in launch.outputs]
    return [*given, *outputs, *(outputs[k] for k in launch.again)], outputs


def start(launch: Launch, array: Callable[[Array, Kind], GuardedArray], **options: Any) -> list[GuardedArray]:
    """Compile and launch the kernel, and return the output arrays."""
    from triton_porting_kit.conformance.language.source import make_kernel

    given, outputs = arguments(launch, array)
    make_kernel(launch.source)[launch.grid](*given, num_warps=launch.warps, **options)
    return outputs


def judge(launch: Launch, outputs: list[GuardedArray]) -> list[tuple[str, Comparison]]:
    """Compare every output with its expected result. Raises `OutOfBounds`."""
    return [
        (f"{name} ({output.kind})", result_of(output).compare(array.read()))
        for name, output, array in zip(launch.names, launch.outputs, outputs, strict=True)
    ]


def run(launch: Launch, memory: MemoryAccess, **options: Any) -> tuple[str, list[Array]]:
    """Run a program and describe the first wrong output, empty if all are right; and the outputs' contents.

    `options` are passed to the compiler. Exceptions of the backend propagate.
    """
    arrays: list[GuardedArray] = []

    def make(values: Array, kind: Kind) -> GuardedArray:
        arrays.append(placed(memory, launch.place, kind, values))
        return arrays[-1]

    outputs = start(launch, make, **options)
    memory.synchronize()
    contents = [array.read() for array in outputs]
    for what, comparison in judge(launch, outputs):
        if comparison.differ:
            return f"{what}: {comparison.message}", contents
    for array in arrays:
        array.check_guards()
        if not any(array is output for output in outputs) and not array.is_unchanged():
            return "an input was written to", contents
    return "", contents
