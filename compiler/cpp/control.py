"""Loops, conditions, calls and returns as statements."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.abi import kernel
from triton_porting_kit.compiler.cpp.arithmetic import signed
from triton_porting_kit.compiler.cpp.dialects import OPENCL
from triton_porting_kit.compiler.cpp.emitter import Emitter
from triton_porting_kit.compiler.cpp.types import cast


def _block(region: Any) -> Any:
    return region.blocks[0]


def _terminator(block: Any) -> Any:
    return block.operations[len(block.operations) - 1]


def _assign(emitter: Emitter, names: list[str], values: list[str], types: list[str]) -> None:
    """A parallel assignment: a value may be the old value of another name."""
    pairs = [(n, v, t) for n, v, t in zip(names, values, types, strict=True) if n != v]
    assigned = {name for name, _, _ in pairs}
    if len(pairs) > 1 and any(value in assigned for _, value, _ in pairs):
        kept = [(emitter.fresh("next"), value, type) for _, value, type in pairs]
        for name, value, type in kept:
            emitter.statement(f"const {type} {name} = {value};")
        pairs = [(n, k, t) for (n, _, t), (k, _, _) in zip(pairs, kept, strict=True)]
    for name, value, _ in pairs:
        emitter.statement(f"{name} = {value};")


def _declare(emitter: Emitter, values: Any, initial: list[str] | None = None) -> tuple[list[str], list[str]]:
    """Declare variables for the values of an operation. Returns their names and types."""
    names, types = [], []
    for position, value in enumerate(values):
        type = emitter.type_of(value).name
        name = emitter.fresh("v")
        emitter.statement(f"{type} {name} = {initial[position]};" if initial else f"{type} {name};")
        names.append(name)
        types.append(type)
    return names, types


def count_loop(emitter: Emitter, operation: Any) -> None:
    """scf.for. Its carried values are variables, which hold its results afterwards."""
    start, stop, step, *initial = emitter.operands(operation)
    body = _block(operation.regions[0])
    induction, *arguments = body.arguments
    names, types = _declare(emitter, arguments, initial)
    for value, name in zip([*arguments, *operation.results], [*names, *names], strict=True):
        emitter.define(value, name)
    counter, type = emitter.fresh("k"), emitter.type_of(induction)
    emitter.define(induction, counter)
    inside = f"{counter} < {stop}"
    if "unsignedCmp" not in operation.attributes:
        inside = f"{signed(emitter, counter, type)} < {signed(emitter, stop, type)}"
    with emitter.braces(f"for ({type.name} {counter} = {start}; {inside}; {counter} += {step})"):
        emitter.block(body)
        _assign(emitter, names, emitter.operands(_terminator(body)), types)


def condition(emitter: Emitter, operation: Any) -> None:
    """scf.if."""
    (holds,) = emitter.operands(operation)
    names, types = _declare(emitter, operation.results)
    for value, name in zip(operation.results, names, strict=True):
        emitter.define(value, name)
    for keyword, region in zip((f"if ({holds})", "else"), operation.regions, strict=True):
        if not len(region.blocks):
            continue
        body = _block(region)
        with emitter.braces(keyword):
            emitter.block(body)
            _assign(emitter, names, emitter.operands(_terminator(body)), types)


def while_loop(emitter: Emitter, operation: Any) -> None:
    """scf.while: the region before the condition, the condition, and the region after it."""
    before, after = (_block(region) for region in operation.regions)
    carried, carried_types = _declare(emitter, before.arguments, emitter.operands(operation))
    results, result_types = _declare(emitter, operation.results)
    for value, name in zip([*before.arguments, *operation.results], [*carried, *results], strict=True):
        emitter.define(value, name)
    for value, name in zip(after.arguments, results, strict=True):
        emitter.define(value, name)
    with emitter.braces("for (;;)"):
        emitter.block(before)
        holds, *passed = emitter.operands(_terminator(before))
        _assign(emitter, results, passed, result_types)
        emitter.statement(f"if (!({holds})) break;")
        emitter.block(after)
        _assign(emitter, carried, emitter.operands(_terminator(after)), carried_types)


def call(emitter: Emitter, operation: Any) -> None:
    """llvm.call of a routine by its name."""
    if emitter.dialect is OPENCL and emitter.text(operation, "callee") == kernel.FAIL:
        emitter.statement(f"return {kernel.FAIL}(status, {', '.join(emitter.operands(operation))});")
        return
    text = f"{emitter.text(operation, 'callee')}({', '.join(emitter.operands(operation))})"
    if not len(operation.results):
        emitter.statement(f"{text};")
        return
    emitter.declare(operation.results[0], text)


def returned(emitter: Emitter, operation: Any) -> None:
    """llvm.return of a status."""
    emitter.statement(f"return {cast('i32', emitter.operands(operation)[0])};")


STATEMENTS = {
    "scf.for": count_loop,
    "scf.if": condition,
    "scf.while": while_loop,
    "llvm.call": call,
    "llvm.return": returned,
}
