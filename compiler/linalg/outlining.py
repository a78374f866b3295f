"""Operations that upstream's deallocation of buffers refuses are functions of their own while it works.

The pass refuses `memref.generic_atomic_rmw`: it does not know what a region of that operation does with buffers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

REFUSED = "memref.generic_atomic_rmw"


@contextlib.contextmanager
def taken_out(module: Any) -> Iterator[None]:
    """Within, functions without a body take the place of the operations; afterwards they have it."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == REFUSED:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    aside = ir.Module.create()
    for number, operation in enumerate(found):
        _take_out(module, aside, operation, f"outlined_{number}")
    yield
    functions = [view.operation for view in aside.body.operations]
    symbols = {str(function.attributes["sym_name"].value) for function in functions}
    for view in list(module.body.operations):
        attributes = view.operation.attributes
        if "sym_name" in attributes and str(attributes["sym_name"].value) in symbols:
            view.operation.erase()
    for function in functions:
        module.body.append(function)


def _take_out(module: Any, aside: Any, operation: Any, symbol: str) -> None:
    """Replace an operation by a call of a function that is declared in `module` and defined in `aside`."""
    captured = _captured(operation)
    given = [*operation.operands, *captured]
    kinds = [value.type for value in given]
    (result,) = operation.results
    attributes = {
        "sym_name": ir.StringAttr.get(symbol),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds, [result.type])),
    }
    _, function = (
        ir.Operation.create(
            "func.func",
            attributes=attributes,
            regions=1,
            loc=operation.location,
            ip=ir.InsertionPoint(place.body),
        )
        for place in (module, aside)
    )
    call = ir.Operation.create(
        "func.call",
        results=[result.type],
        operands=given,
        attributes={"callee": ir.FlatSymbolRefAttr.get(symbol)},
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    result.replace_all_uses_with(call.result)
    entry = function.regions[0].blocks.append(*kinds, arg_locs=[operation.location] * len(kinds))
    replaced = list(zip(given, entry.arguments, strict=True))
    for inner in (operation, *(view.operation for view in operation.regions[0].blocks[0].operations)):
        for number, value in enumerate(inner.operands):
            inner.operands[number] = next((new for old, new in replaced if old == value), value)
    entry.append(operation)
    ir.Operation.create("func.return", operands=[result], loc=operation.location, ip=ir.InsertionPoint(entry))


def _captured(operation: Any) -> list[Any]:
    """The values from outside of an operation's region that are used in it."""
    block = operation.regions[0].blocks[0]
    body = [view.operation for view in block.operations]
    inside = {*block.arguments, *(result for each in body for result in each.results)}
    return list(dict.fromkeys(value for each in body for value in each.operands if value not in inside))
