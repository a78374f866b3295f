"""Changes what a loop carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton_porting_kit.toolchain.mlir import ir


def without_carried(loop: Any, index: int) -> Any:
    """`loop`, an ``scf.for``, without its carried value `index`, which nothing may use. Returns the new operation."""
    operands = list(loop.operands)
    kept = [number for number in range(len(loop.results)) if number != index]
    return _rebuilt(loop, [*operands[:3], *(operands[3 + n] for n in kept)], kept, index)


def _rebuilt(loop: Any, operands: Sequence[Any], kept: Sequence[int], gone: int) -> Any:
    block = loop.regions[0].blocks[0]
    made = ir.Operation.create(
        "scf.for",
        results=[loop.results[number].type for number in kept],
        operands=list(operands),
        attributes={name: loop.attributes[name] for name in _names(loop)},
        regions=1,
        loc=loop.location,
        ip=ir.InsertionPoint(loop),
    )
    block.append_to(made.regions[0])
    terminator = _terminator(block)
    values = list(terminator.operands)
    _replace_terminator(terminator, [values[number] for number in kept])
    block.erase_argument(1 + gone)
    for place, number in enumerate(kept):
        loop.results[number].replace_all_uses_with(made.results[place])
    loop.erase()
    return made


def with_carried(
    loop: Any, initial: Sequence[Any], following: Callable[[Sequence[Any]], Sequence[Any]]
) -> Any:
    """`loop` with more carried values. `following` takes those of an iteration, and returns the next ones, which it may
    create before the terminator. Returns the new operation, whose last results are the added values.
    """
    block = loop.regions[0].blocks[0]
    made = ir.Operation.create(
        "scf.for",
        results=[*(result.type for result in loop.results), *(value.type for value in initial)],
        operands=[*loop.operands, *initial],
        attributes={name: loop.attributes[name] for name in _names(loop)},
        regions=1,
        loc=loop.location,
        ip=ir.InsertionPoint(loop),
    )
    block.append_to(made.regions[0])
    arguments = [block.add_argument(value.type, loop.location) for value in initial]
    terminator = _terminator(block)
    added = list(following(arguments))
    _replace_terminator(terminator, [*terminator.operands, *added])
    for old, new in zip(loop.results, made.results, strict=False):
        old.replace_all_uses_with(new)
    loop.erase()
    return made


def _names(operation: Any) -> list[str]:
    return [named if isinstance(named, str) else named.name for named in operation.attributes]


def _terminator(block: Any) -> Any:
    return block.operations[len(block.operations) - 1].operation


def _replace_terminator(terminator: Any, operands: Sequence[Any]) -> None:
    ir.Operation.create(
        "scf.yield", operands=list(operands), loc=terminator.location, ip=ir.InsertionPoint(terminator)
    )
    terminator.erase()
