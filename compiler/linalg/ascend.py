"""What AscendNPU-IR expects beyond the convention: element-wise operations on tensors, and numbers of its LLVM."""

from __future__ import annotations

import re
from typing import Any

from triton_porting_kit.errors import CompilationError
from triton_porting_kit.toolchain.mlir import ir

from . import ascend_operations
from .expansion import Functions

ATOMIC_KINDS = {
    "addf": 0, "addi": 1, "assign": 2, "maximumf": 3, "maxs": 4, "maxu": 5, "minimumf": 6, "mins": 7, "minu": 8,
    "mulf": 9, "muli": 10, "ori": 11, "andi": 12, "maxnumf": 13, "minnumf": 14,
}  # fmt: skip
"""The kinds of `memref.atomic_rmw` as LLVM 19 numbers them, which AscendNPU-IR is built with. Generic syntax has
numbers, and later releases sort the kinds by name."""

KINDS = (*sorted(ATOMIC_KINDS), "xori")
"""The same by their numbers in the installed MLIR."""
_KIND = re.compile(r'("memref\.atomic_rmw"\([^)]*\) <\{kind = )(\d+)')
_FLAGS = re.compile(r'("arith\.trunci"\([^)]*\)) <\{overflowFlags = #arith\.overflow<\w+>\}>')


def for_llvm_19(text: str) -> str:
    """The generic text of a module as LLVM 19 reads it: with its numbers of atomic operations, and without later flags.

    Raises `CompilationError` for exclusive or, which LLVM 19 does not have.
    """

    def number(found: re.Match[str]) -> str:
        name = KINDS[int(found[2])]
        if name not in ATOMIC_KINDS:
            raise CompilationError(
                "memref.atomic_rmw has no form in the convention ascend: LLVM 19 has no atomic exclusive or",
                operation="memref.atomic_rmw",
                remedy="use another atomic operation",
            )
        return f"{found[1]}{ATOMIC_KINDS[name]}"

    return _FLAGS.sub(r"\1", _KIND.sub(number, text))


def write_otherwise(module: Any) -> bool:
    """Call functions in the place of operations that the compiler refuses. Returns whether there were some."""
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if ascend_operations.is_refused(operation):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    functions = Functions()
    for operation in found:
        ascend_operations.rewrite(functions, operation)
    functions.add_to(module)
    return bool(found)


def apply_to_tensors(kernel: Any) -> bool:
    """Replace `linalg.generic` of elements by operations on whole tensors, or by loops over the elements.

    Returns whether there were some.
    """
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == "linalg.generic" and _is_element_wise(operation):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    for operation in found:
        _apply(operation) if _is_of_tensors(operation) else _loop(operation)
    return bool(found)


def _is_element_wise(operation: Any) -> bool:
    maps = [attribute.value for attribute in operation.attributes["indexing_maps"]]
    shapes = [list(ir.RankedTensorType(value.type).shape) for value in operation.operands]
    identity = ir.AffineMap.get_identity(len(shapes[0]))
    return all(found == identity for found in maps) and all(shape == shapes[0] for shape in shapes)


def _is_of_tensors(operation: Any) -> bool:
    """Whether all operations of the region exist for tensors, too. Tensors without dimensions are refused there."""
    if not ir.RankedTensorType(operation.operands[0].type).rank:
        return False
    body = [view.operation for view in operation.regions[0].blocks[0].operations][:-1]
    return bool(body) and all(
        each.name.startswith(("arith.", "math."))
        and each.name not in ascend_operations.LOOPED
        and not list(each.regions)
        and len(each.results) == 1
        for each in body
    )


def _loop(operation: Any) -> None:
    """Compute one element after the other."""
    shape = list(ir.RankedTensorType(operation.operands[0].type).shape)
    location, index = operation.location, ir.IndexType.get()

    def create(name: str, at: Any, results: list[Any], operands: list[Any], **given: Any) -> Any:
        return ir.Operation.create(name, results=results, operands=operands, loc=location, ip=at, **given)

    def constant(value: int) -> Any:
        attributes = {"value": ir.IntegerAttr.get(index, value)}
        return create(
            "arith.constant", ir.InsertionPoint(operation), [index], [], attributes=attributes
        ).result

    count, kinds = len(operation.results), [result.type for result in operation.results]
    given, carried = list(operation.operands)[:-count], list(operation.operands)[-count:]
    zero, one = constant(0), constant(1)
    at, loops, indices = ir.InsertionPoint(operation), [], []
    for size in shape:
        loop = create("scf.for", at, kinds, [zero, constant(size), one, *carried], regions=1)
        block = loop.regions[0].blocks.append(index, *kinds, arg_locs=[location] * (1 + count))
        first, *carried = block.arguments
        loops.append(loop)
        indices.append(first)
        at = ir.InsertionPoint(block)
    body = operation.regions[0].blocks[0]
    for argument, tensor in zip(body.arguments, [*given, *carried], strict=True):
        element = create("tensor.extract", at, [argument.type], [tensor, *indices]).result
        argument.replace_all_uses_with(element)
    for view in list(body.operations):
        each = view.operation
        if each.name == "linalg.index":
            each.results[0].replace_all_uses_with(indices[int(each.attributes["dim"].value)])
        elif each.name == "linalg.yield":
            pairs = zip(each.operands, carried, kinds, strict=True)
            carried = [
                create("tensor.insert", at, [kind], [v, old, *indices]).result for v, old, kind in pairs
            ]
        elif loops:
            loops[-1].regions[0].blocks[0].append(each)
        else:
            each.move_before(operation)
    for loop in reversed(loops):
        create("scf.yield", ir.InsertionPoint(loop.regions[0].blocks[0]), [], carried)
        carried = list(loop.results)
    for result, value in zip(operation.results, carried, strict=True):
        result.replace_all_uses_with(value)
    operation.erase()


def _apply(operation: Any) -> None:
    shape = list(ir.RankedTensorType(operation.operands[0].type).shape)
    block = operation.regions[0].blocks[0]
    values = list(zip(block.arguments, operation.operands, strict=True))
    at = ir.InsertionPoint(operation)

    def tensor(value: Any) -> Any:
        for scalar, made in values:
            if scalar == value:
                return made
        made = ir.Operation.create(  # a scalar from outside
            "tensor.splat",
            results=[ir.RankedTensorType.get(shape, value.type)],
            operands=[value],
            loc=operation.location,
            ip=at,
        ).result
        values.append((value, made))
        return made

    for view in block.operations:
        each = view.operation
        if each.name == "linalg.yield":
            for result, value in zip(operation.results, each.operands, strict=True):
                result.replace_all_uses_with(tensor(value))
            break
        kind = ir.RankedTensorType.get(shape, each.results[0].type)
        attributes = {name: each.attributes[name] for name in _names(each)}
        if each.name == "arith.constant":
            attributes = {"value": ir.DenseElementsAttr.get_splat(kind, each.attributes["value"])}
        made = ir.Operation.create(
            each.name,
            results=[kind],
            operands=[tensor(value) for value in each.operands],
            attributes=attributes,
            loc=each.location,
            ip=at,
        )
        values.append((each.results[0], made.result))
    operation.erase()


def _names(operation: Any) -> list[str]:
    return [str(getattr(named, "name", named)) for named in operation.attributes]
