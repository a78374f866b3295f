"""Verifies a module against the declarations of the dialect, which MLIR itself does not know: ``tpk`` is
unregistered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triton_porting_kit.compiler.defects import InvalidIR
from triton_porting_kit.toolchain.mlir import ir

from .registry import OPERATIONS
from .schema import Kind, Op
from .types import element_of, is_scalar

PREFIX = "tpk."


def verify(module: Any, text: str | None = None) -> None:
    """Check every ``tpk`` operation of a structured module, in MLIR's bindings.

    `text` is the text that the module was parsed from, if any; the message then names the line. Raises `InvalidIR` for
    the first operation that does not match its declaration, with its kernel line.
    """
    wrong: list[tuple[Any, str, int]] = []
    seen: dict[str, int] = {}

    def visit(operation: Any) -> Any:
        name = operation.name
        if name.startswith(PREFIX):
            seen[name] = seen.get(name, 0) + 1
            complaint = next(complaints(operation), None)
            if complaint is not None:
                wrong.append((operation, complaint, seen[name]))
                return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for operation, complaint, count in wrong:
        line = None if text is None else _line_of(text, operation.name, count)
        where = "" if line is None else f", line {line}"
        place = str(operation.location)
        if text is None:
            text = str(module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True))
        raise InvalidIR(f"this is not valid{where}: '{operation.name}': {complaint}", text, place=place)


def complaints(operation: Any) -> Iterator[str]:
    """What is wrong with one ``tpk`` operation of MLIR's bindings, a sentence each."""
    cls = OPERATIONS.get(operation.name)
    if cls is None:
        import difflib  # the import takes a millisecond

        like = difflib.get_close_matches(operation.name, OPERATIONS, 1)
        hint = f" ({like[0]} is)" if like else ""
        yield f"it is not an operation of the dialect{hint}"
        return
    view = cls(operation)
    try:
        cls.sizes(operation)
        groups = view.groups()
    except ValueError as error:
        yield str(error)
        return
    for group, values in zip(cls.group_table, groups, strict=True):
        for value in values:
            if not _is(value, group.kind):
                yield f"`{group.name}` is {value.type}: it should be {group.kind.value}"
    yield from _counts(cls, operation)
    yield from _attributes(view)
    if cls.result_count is None or len(operation.results) == cls.result_count:
        yield from view.verify()


def _counts(cls: type[Op[Any]], operation: Any) -> Iterator[str]:
    if cls.result_count is not None and len(operation.results) != cls.result_count:
        yield f"it has {len(operation.results)} results instead of {cls.result_count}"
    if len(operation.regions) != cls.region_count:
        yield f"it has {len(operation.regions)} regions instead of {cls.region_count}"
    for region in operation.regions:
        for block in region.blocks:
            last = block.operations[len(block.operations) - 1].operation if len(block.operations) else None
            if last is None or last.name.partition(".")[0] not in ("tpk", "cf"):
                yield "its region does not end with tpk.yield"


def _attributes(view: Op[Any]) -> Iterator[str]:
    attributes = view.operation.attributes
    for name, declared in type(view).attribute_table.items():
        if name not in attributes:
            if declared.required:
                yield f"it lacks the attribute {name}"
            continue
        try:
            value = getattr(view, name)
        except (AttributeError, TypeError, ValueError):
            yield f"its attribute {name} is {attributes[name]}, which has the wrong type"
            continue
        if declared.choices and value not in declared.choices:
            known = ", ".join(str(choice) for choice in declared.choices if choice != "")
            yield f"its attribute {name} is {value!r}: it should be one of {known}"
    for named in attributes:
        name = named if isinstance(named, str) else named.name
        known_here = name in type(view).attribute_table or name == "operandSegmentSizes"
        if not known_here and "." not in name:  # an attribute with a dialect prefix belongs to that dialect
            yield f"it has no attribute {name}"


def _is(value: Any, kind: Kind) -> bool:
    match kind:
        case Kind.ANY:
            return True
        case Kind.TENSOR:
            return not is_scalar(value)
        case Kind.INTEGERS:
            return element_of(value) in ("i32", "i64")
        case Kind.BOOLEANS:
            return element_of(value) == "i1"
        case Kind.POINTER | Kind.I64:
            return is_scalar(value) and element_of(value) == kind.value


def _line_of(text: str, name: str, count: int) -> int | None:
    """The line of the `count`-th operation of that name. A text and a walk of its module have the same order."""
    for number, line in enumerate(text.splitlines(), 1):
        count -= line.count(f'"{name}"(')
        if count <= 0:
            return number
    return None
