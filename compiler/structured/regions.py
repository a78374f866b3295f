"""Operations whose region is a function of elements: taken over as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .diagnostics import fail
from .rewriter import Rewriter


def with_region(rewriter: Rewriter, operation: Any, name: str, kept: Sequence[str]) -> None:
    """The operation `name` with the region's blocks, whose return becomes tpk.yield, and the attributes `kept`."""
    attributes = {key: operation.attributes[key] for key in kept if key in operation.attributes}
    refuse_pointers(rewriter, operation)
    kinds = [result.type for result in operation.results]
    created = rewriter.emitter.before(operation).op(
        name, list(operation.operands), kinds, attributes, regions=1
    )
    for block in list(operation.regions[0].blocks):
        end = block.operations[len(block.operations) - 1]
        if end.operation.name.endswith(".return"):
            rewriter.emitter.before(end).op("tpk.yield", list(end.operands), [])
            end.operation.erase()
        block.append_to(created.regions[0])
    rewriter.replace(operation, *created.results)


def refuse_pointers(rewriter: Rewriter, operation: Any) -> None:
    """Raise `CompilationError` for an operation whose region would compute with pointers."""
    if any(rewriter.types.info(value).is_pointer for value in (*operation.operands, *operation.results)):
        fail(
            operation,
            "a function of pointers, element by element",
            "give it integers: `pointer.to(tl.int64)`",
        )
