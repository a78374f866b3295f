"""What a kernel may not do where memory is buffers with offsets: use an address as a number."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.artefacts import Parsed, mlir_module
from triton_porting_kit.compiler.locations import source_location
from triton_porting_kit.compiler.pipeline import Metadata, Stage
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain import mlir

REMEDY = (
    "the device has no shared virtual memory: memory is buffers, whose addresses only kernels know. Pass each array as "
    "an argument, and choose between arrays by their values, not by pointers"
)

_NUMBERS = ("llvm.inttoptr", "llvm.ptrtoint")


def without_numbers(lowering: Stage) -> Stage:
    """A lowering of the structured form that refuses addresses as numbers, with the kernel's line.

    The host knows another number, and a number may belong to no buffer. The loops compare addresses for themselves.
    """

    def run(source: Any, metadata: Metadata) -> Any:
        module = mlir_module(source)
        if (number := _number(module)) is not None:
            raise CompilationError(
                "without shared virtual memory, an address is no number, and belongs to one array",
                operation=number.name,
                location=source_location(number.location),
                remedy=REMEDY,
            )
        return lowering.run(Parsed(str(source), module), metadata)

    return Stage(lowering.name, run, lowering.check)


def _number(module: Any) -> Any | None:
    """The first operation that converts an address."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name not in _NUMBERS:
            return mlir.ir.WalkResult.ADVANCE
        found.append(operation)
        return mlir.ir.WalkResult.INTERRUPT

    module.operation.walk(visit)
    return found[0] if found else None
