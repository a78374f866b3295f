"""Pointers that a kernel computes: chosen, moved, carried by a loop, or taken as integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .expansion import Text, width
from .rewriting import Rewriting

_POINTER = "!llvm.ptr"
_OF_NUMBERS = ("arith.", "math.", "tensor.", "linalg.")
"""The dialects whose operations have no pointers, except for choices."""


def _is_pointer(value: Any) -> bool:
    return str(value.type) == _POINTER


def parts(rewriting: Rewriting, pointer: Any, at: Any) -> tuple[Any, Any]:
    """A pointer as a memref and the distance from it in elements, an index."""
    found = rewriting.moves.get(pointer)
    if found is not None:
        return found
    body = Text()
    (nothing,) = rewriting.functions.call(at, "here", [], ["index"], body, [body.constant(0)])
    return pointer, nothing


def enter(rewriting: Rewriting, operation: Any) -> Any:
    """Before the regions of an operation: a loop that carries pointers carries their distances, too.

    Returns the operation that takes its place.
    """
    if operation.name == "scf.while":
        return _while(rewriting, operation)
    if operation.name != "scf.for":
        return operation
    carried = [number for number, result in enumerate(operation.results) if _is_pointer(result)]
    if not carried:
        return operation
    first = list(operation.operands)[3:]
    pairs = [parts(rewriting, first[number], operation) for number in carried]
    for number, (base, _) in zip(carried, pairs, strict=True):
        first[number] = base
    first += [distance for _, distance in pairs]
    kinds = [value.type for value in first]
    made = rewriting.create("scf.for", operation, kinds, [*list(operation.operands)[:3], *first])
    old = operation.regions[0].blocks[0]
    kinds.insert(0, old.arguments[0].type)
    new = made.regions[0].blocks.append(*kinds, arg_locs=[operation.location] * len(kinds))
    for argument, other in zip(old.arguments, new.arguments, strict=False):
        argument.replace_all_uses_with(other)
    for view in list(old.operations):
        new.append(view)
    count = len(operation.results)
    for place, number in enumerate(carried):
        for values, skipped in ((new.arguments, 1), (made.results, 0)):
            pointer = values[skipped + number]
            rewriting.moves[pointer] = (pointer, values[skipped + count + place])
    rewriting.replace_by(operation, list(made.results)[:count])
    return made


def _while(rewriting: Rewriting, operation: Any) -> Any:
    """A `while` loop whose pointers are carried by two: a memref and a distance each."""
    first = list(operation.operands)
    given = [number for number, value in enumerate(first) if _is_memref(value)]
    carried = [number for number, result in enumerate(operation.results) if _is_pointer(result)]
    if not given and not carried:
        return operation
    pairs = [parts(rewriting, first[number], operation) for number in given]
    for number, (base, _) in zip(given, pairs, strict=True):
        first[number] = base
    old = [region.blocks[0] for region in operation.regions]
    passed = list(list(old[0].operations)[-1].operation.operands)[1:]
    kinds = [result.type for result in operation.results]
    arguments = list(old[0].arguments)
    for number in carried:
        if passed[number] not in arguments:
            raise rewriting.unsupported(
                operation,
                "a `while` loop moves a pointer in its condition",
                "carry an offset, and index from the pointer argument",
            )
        kinds[number] = first[arguments.index(passed[number])].type
    index = ir.IndexType.get()
    kinds += [index] * len(carried)
    first += [distance for _, distance in pairs]
    made = ir.Operation.create(
        "scf.while",
        results=kinds,
        operands=first,
        regions=2,
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    groups = [(list(made.results), carried)]
    types = ([value.type for value in first], kinds)
    for region, block, held, pointers in zip(made.regions, old, types, (given, carried), strict=True):
        new = region.blocks.append(*held, arg_locs=[operation.location] * len(held))
        for argument, other in zip(block.arguments, new.arguments, strict=False):
            argument.replace_all_uses_with(other)
        for view in list(block.operations):
            new.append(view)
        groups.append((list(new.arguments), pointers))
    for values, pointers in groups:
        for place, number in enumerate(pointers):
            distance = values[len(values) - len(pointers) + place]
            rewriting.moves[values[number]] = (values[number], distance)
    rewriting.replace_by(operation, list(made.results)[: len(operation.results)])
    return made


def leave(rewriting: Rewriting, operation: Any) -> Any:
    """After the regions of an operation that stays: what it chooses or carries of pointers, it does of their parts."""
    name = operation.name
    if name in ("scf.yield", "scf.condition"):
        return _yield(rewriting, operation)
    if name.startswith(_OF_NUMBERS) and name != "arith.select":
        return operation
    pointers = [number for number, result in enumerate(operation.results) if _is_pointer(result)]
    if not pointers or operation.name == "llvm.mlir.zero":  # the base of addresses, see `Rewriting.point_to`
        return operation
    if operation.name == "arith.select":
        return _select(rewriting, operation)
    if operation.name == "scf.if":
        return _if(rewriting, operation, pointers)
    raise rewriting.unsupported(
        operation, "its pointer is not derived from one argument", "index from pointer arguments"
    )


def _yield(rewriting: Rewriting, operation: Any) -> Any:
    """A loop's body yields the parts of the pointers that it carries; an `if` is made anew when it is left."""
    parent = operation.parent
    if parent is None or parent.name not in ("scf.for", "scf.while"):
        return operation
    values = list(operation.operands)
    if not any(value in rewriting.moves or _is_memref(value) for value in values):
        return operation
    distances = []
    for number, value in enumerate(values):
        if _is_memref(value):
            base, distance = parts(rewriting, value, operation)
            values[number] = base
            distances.append(distance)
    made = ir.Operation.create(
        operation.name,
        operands=[*values, *distances],
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    operation.erase()
    return made


def _is_memref(value: Any) -> bool:
    return str(value.type).startswith("memref")


def _same_kind(rewriting: Rewriting, operation: Any, bases: list[Any]) -> None:
    kinds = {str(value.type) for value in bases}
    if len(kinds) != 1:
        raise rewriting.unsupported(
            operation,
            f"it chooses between {' and '.join(sorted(kinds))}",
            "choose between pointers of one type",
        )


def _select(rewriting: Rewriting, operation: Any) -> Any:
    condition, *given = operation.operands
    pairs = [parts(rewriting, value, operation) for value in given]
    _same_kind(rewriting, operation, [base for base, _ in pairs])
    made = [
        ir.Operation.create(
            "arith.select",
            results=[values[0].type],
            operands=[condition, *values],
            loc=operation.location,
            ip=ir.InsertionPoint(operation),
        ).result
        for values in zip(*pairs, strict=True)
    ]
    rewriting.moves[made[0]] = (made[0], made[1])
    rewriting.replace_by(operation, made[:1])
    return None


def _if(rewriting: Rewriting, operation: Any, pointers: list[int]) -> Any:
    kinds = [result.type for result in operation.results]
    for region in operation.regions:
        end = list(region.blocks[0].operations)[-1].operation
        values = list(end.operands)
        distances = []
        for number in pointers:
            base, distance = parts(rewriting, values[number], end)
            values[number] = base
            distances.append(distance)
            if not _is_pointer(operation.results[number]):
                continue
            if _is_pointer_type(kinds[number]):
                kinds[number] = base.type
            elif str(kinds[number]) != str(base.type):
                _same_kind(rewriting, operation, [operation.results[number], base])
        ir.Operation.create(
            "scf.yield", operands=[*values, *distances], loc=operation.location, ip=ir.InsertionPoint(end)
        )
        end.erase()
    index = ir.IndexType.get()
    made = ir.Operation.create(
        "scf.if",
        results=[*kinds, *[index] * len(pointers)],
        operands=list(operation.operands),
        regions=len(operation.regions),
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    for old, new in zip(operation.regions, made.regions, strict=True):
        block = new.blocks.append()
        for view in list(old.blocks[0].operations):
            block.append(view)
    count = len(kinds)
    for place, number in enumerate(pointers):
        rewriting.moves[made.results[number]] = (made.results[number], made.results[count + place])
    rewriting.replace_by(operation, list(made.results)[:count])
    return made


def _is_pointer_type(kind: Any) -> bool:
    return str(kind) == _POINTER


def moved(rewriting: Rewriting, operation: Any) -> None:
    """`llvm.getelementptr` with one index. Memrefs cannot be moved, so the accesses are."""
    base, *indices = operation.operands
    element = rewriting.pointee(base)
    unit = str(operation.attributes["elem_type"].value)
    size, step = width(element), width(unit)
    constant = next(int(index) for index in operation.attributes["rawConstantIndices"])
    body = Text()
    kind = str(indices[0].type) if indices else "i64"
    distance = body.index("%a0", kind) if indices else body.constant(constant)
    if step % size:
        raise rewriting.unsupported(
            operation, f"a pointer to {element} is moved by elements of {unit}", "move it by its own elements"
        )
    if step != size:
        distance = body.let(f"arith.muli {distance}, {body.constant(step // size)} : index")
    earlier = rewriting.moves.get(base)
    operands = list(indices)
    if earlier is not None:
        operands.append(earlier[1])
        distance = body.let(f"arith.addi {distance}, %a{len(operands) - 1} : index")
    (value,) = rewriting.functions.call(operation, "moved", operands, ["index"], body, [distance])
    # The pointer is a name for the pair: no operation is left that computes it.
    result = operation.results[0]
    result.set_type(base.type)
    moved_base = ir.Operation.create(
        "builtin.unrealized_conversion_cast",
        results=[base.type],
        operands=[base],
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    ).result
    rewriting.moves[moved_base] = (base if earlier is None else earlier[0], value)
    rewriting.replace_by(operation, [moved_base])


def as_integer(rewriting: Rewriting, operation: Any) -> None:
    """`llvm.ptrtoint`: the address of the memref, and the distance in bytes."""
    pointer = operation.operands[0]
    base, distance = rewriting.moves.get(pointer, (pointer, None))
    body = Text()
    address = body.let(f"memref.extract_aligned_pointer_as_index %a0 : {base.type} -> index")
    if distance is not None:
        size = body.constant(width(rewriting.pointee(base)) // 8)
        address = body.let(f"arith.addi {address}, {body.let(f'arith.muli %a1, {size} : index')} : index")
    kind = str(operation.results[0].type)
    operands = [base] if distance is None else [base, distance]
    value = body.let(f"arith.index_cast {address} : index to {kind}")
    rewriting.replace_by(
        operation, rewriting.functions.call(operation, "address", operands, [kind], body, [value])
    )


def from_integer(rewriting: Rewriting, operation: Any) -> None:
    """`llvm.inttoptr`: a pointer argument and the distance from it in bytes. The argument is the first with the largest
    elements: it may be used for elements that are no larger.
    """
    arguments = [value for value in rewriting.function.regions[0].blocks[0].arguments if _is_memref(value)]
    size = max((width(rewriting.pointee(value)) for value in arguments), default=8)
    argument = rewriting.argument_for(operation, size)
    number = operation.operands[0]
    body = Text()
    address = body.let(f"memref.extract_aligned_pointer_as_index %a0 : {argument.type} -> index")
    distance = body.let(f"arith.subi {body.index('%a1', str(number.type))}, {address} : index")
    given = [argument, number]
    (value,) = rewriting.functions.call(operation, "from_integer", given, ["index"], body, [distance])
    base = ir.Operation.create(
        "builtin.unrealized_conversion_cast",
        results=[ir.Type.parse(rewriting.convention.pointer("i8"))],
        operands=[argument],
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    ).result
    rewriting.moves[base] = (base, value)
    rewriting.replace_by(operation, [base])


EXPANSIONS: dict[str, Callable[[Rewriting, Any], None]] = {
    "llvm.getelementptr": moved,
    "llvm.ptrtoint": as_integer,
    "llvm.inttoptr": from_integer,
}
