"""Operations whose region is a function of elements: the region is moved as a whole."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.compiler.dialect import Op
from triton_porting_kit.compiler.dialect.operations import Yield

from .diagnostics import fail
from .rewriter import Rewriter


def with_region(rewriter: Rewriter, operation: Any, cls: type[Op[Any]]) -> None:
    """Create an operation of class `cls` with the region's blocks, whose return becomes tpk.yield."""
    refuse_pointers(rewriter, operation)
    kinds = [result.type for result in operation.results]
    created = rewriter.emitter.before(operation).op(
        cls.OPERATION_NAME, list(operation.operands), kinds, cls.attributes_in(operation), regions=1
    )
    for block in list(operation.regions[0].blocks):
        end = block.operations[len(block.operations) - 1]
        if end.operation.name.endswith(".return"):
            rewriter.emitter.before(end).create(Yield, [], values=list(end.operands))
            end.operation.erase()
        block.append_to(created.regions[0])
    rewriter.replace(operation, *created.results)


def refuse_pointers(rewriter: Rewriter, operation: Any) -> None:
    """Raise `CompilationError` for an operation whose region would compute with pointers."""
    if any(rewriter.types.info(value).is_pointer for value in (*operation.operands, *operation.results)):
        fail(
            operation,
            "the function of this operation takes or returns pointers",
            "pass integers instead: `pointer.to(tl.int64)`",
        )
