"""Calls of functions that Triton did not inline: upstream's inliner does, once all operations are upstream's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .pointers import parts
from .rewriting import Rewriting


def call(rewriting: Rewriting, operation: Any, lower: Callable[[Rewriting, Any], None]) -> None:
    """A call of a function, which is rewritten by `lower` for its first call. It gets the grid as more arguments."""
    name = str(operation.attributes["callee"].value)
    given = list(operation.operands)
    pointers = [number for number, value in enumerate(given) if str(value.type).startswith("memref")]
    for number in pointers:  # a memref, and the distance from it
        given[number], distance = parts(rewriting, given[number], operation)
        given.append(distance)
    if name not in rewriting.called:
        function = _function(rewriting, operation, name)
        entry = function.regions[0].blocks[0]
        for argument, value in zip(entry.arguments, given, strict=False):
            if str(argument.type) == "!llvm.ptr":
                argument.set_type(value.type)
        for number in pointers:
            pointer = entry.arguments[number]
            distance = entry.add_argument(ir.IndexType.get(), function.location)
            rewriting.moves[pointer] = (pointer, distance)
        results = list(ir.FunctionType(function.attributes["function_type"].value).results)
        with rewriting.inside(function, results):
            lower(rewriting, entry)
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        rewriting.called[name] = [argument.type for argument in entry.arguments]
    kinds = [value.type for value in (*given, *rewriting.grid)]
    if [str(kind) for kind in kinds] != [str(kind) for kind in rewriting.called[name]]:
        raise rewriting.unsupported(
            operation,
            f"{name} is called with pointers to other types before",
            "let Triton inline the function",
        )
    made = ir.Operation.create(
        "func.call",
        results=[result.type for result in operation.results],
        operands=[*given, *rewriting.grid],
        attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    rewriting.replace_by(operation, list(made.results))


def _function(rewriting: Rewriting, operation: Any, name: str) -> Any:
    for view in rewriting.module.body.operations:
        attributes = view.operation.attributes
        if "sym_name" in attributes and str(attributes["sym_name"].value) == name:
            return view.operation
    raise rewriting.unsupported(
        operation, f"there is no function {name}", "report this as a defect of the kit"
    )
