"""Address spaces of pointers, from what each comes from: a frame, a constant, or anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

_ROOTS = {"llvm.alloca": "private", "llvm.mlir.addressof": "constant"}
_COPIES = ("llvm.getelementptr", "arith.select", "vector.broadcast", "vector.extract", "vector.shuffle")


def address_spaces(
    function: Any, refuse: Callable[[Any, str], Exception], arguments: Mapping[int, str] | None = None
) -> dict[Any, str]:
    """The spaces of a function's pointers, and vectors of them, that are not in the global one.

    `arguments` are the spaces of the function's arguments that are not in the global one, by position. A pointer
    that comes from two spaces raises what `refuse` makes of the operation and of what is wrong.
    """
    pointers = _Pointers()
    for operation in _operations(function):
        for one, other in _same(operation):
            pointers.join(one, other)
    roots: dict[Any, str] = {}
    for operation in _operations(function):
        if operation.name in _ROOTS or operation.name == "llvm.load":
            for value in filter(_is_pointer, operation.results):
                found = _ROOTS.get(operation.name, "")
                if roots.setdefault(pointers.representative(value), found) != found:
                    raise refuse(operation, "a pointer that is in one of two address spaces")
    for position, argument in enumerate(function.regions[0].blocks[0].arguments):
        space = (arguments or {}).get(position, "")
        if _is_pointer(argument) and roots.setdefault(pointers.representative(argument), space) != space:
            raise refuse(function, "a pointer that is in one of two address spaces")
    spaces = roots | {value: roots.get(pointers.representative(value), "") for value in pointers.values}
    return {value: space for value, space in spaces.items() if space}


class _Pointers:
    """Sets of pointers that are in one space."""

    def __init__(self) -> None:
        self._next: dict[Any, Any] = {}

    @property
    def values(self) -> list[Any]:
        return list(self._next)

    def representative(self, value: Any) -> Any:
        while value in self._next and self._next[value] != value:
            value = self._next[value]
        return value

    def join(self, one: Any, other: Any) -> None:
        for value in (one, other):
            self._next.setdefault(value, value)
        self._next[self.representative(one)] = self.representative(other)


def _is_pointer(value: Any) -> bool:
    return "!llvm.ptr" in str(value.type)


def _operations(operation: Any) -> Iterator[Any]:
    """An operation's operations, those inside of them included."""
    for region in operation.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from _operations(view.operation)


def _same(operation: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs of pointers that an operation makes one: operands and results, what a loop carries, what is yielded."""
    pairs: list[tuple[Any, Any]] = []
    if operation.name in _COPIES:
        pairs = [(value, operation.results[0]) for value in operation.operands]
    elif operation.name == "scf.if":
        for region in operation.regions:
            for block in region.blocks:
                pairs += zip(_passed(block), operation.results, strict=True)
    elif operation.name == "scf.for":
        body = operation.regions[0].blocks[0]
        carried = list(body.arguments)[1:]
        for values in (list(operation.operands)[3:], _passed(body), operation.results):
            pairs += zip(carried, values, strict=True)
    elif operation.name == "scf.while":
        before, after = (region.blocks[0] for region in operation.regions)
        pairs += zip(before.arguments, operation.operands, strict=True)
        pairs += zip(before.arguments, _passed(after), strict=True)
        for values in (after.arguments, operation.results):
            pairs += zip(_passed(before)[1:], values, strict=True)
    return (pair for pair in pairs if _is_pointer(pair[0]) and _is_pointer(pair[1]))


def _passed(block: Any) -> list[Any]:
    """The operands of a block's terminator; none if it passes nothing."""
    return list(block.operations[len(block.operations) - 1].operands)
