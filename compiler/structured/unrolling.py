"""Short loops over tiles, written out before the import.

A tile that a loop carries lives in memory: every iteration loads and stores it. Where all iterations are in one block,
one loop over the tile computes them, each element in a register. Pooling and small filters are such loops. A tile
that a loop carries for nothing but itself, as the count of a pooling that divides by a constant, is dropped.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain.mlir import ir

MAX_ITERATIONS = 8
"""Iterations of one loop."""
MAX_OPERATIONS = 400
"""Operations that a loop becomes: the time to compile grows with them."""
_PURE = ("arith.", "math.")
_SIMPLE = frozenset(
    {
        "tt.addptr",
        "tt.bitcast",
        "tt.broadcast",
        "tt.clampf",
        "tt.expand_dims",
        "tt.fp_to_fp",
        "tt.load",
        "tt.make_range",
        "tt.splat",
    }
)
"""Operations of Triton that may be in such a loop: those of single elements, and those that make addresses."""


def unroll(module: Any) -> None:
    """Write out the loops of a TTIR module for which that pays, in place.

    The others no longer carry what only they use, once unused operations are erased.
    """
    loops: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == "scf.for":
            loops.append(operation.operation)
        return ir.WalkResult.ADVANCE

    # Inner loops come first, so that a nest can go as a whole.
    module.operation.walk(visit, ir.WalkOrder.POST_ORDER)
    for loop in loops:
        if (iterations := _iterations(loop)) is not None:
            _write_out(loop, iterations)
        else:
            _forget(loop)


def _forget(loop: Any) -> None:
    """Let the carried values that only serve themselves stay as they are."""
    block = loop.regions[0].blocks[0]
    terminator = [*block.operations][-1].operation
    for number, (result, carried) in enumerate(zip(loop.results, list(block.arguments)[1:], strict=True)):
        if not any(True for _ in result.uses) and _serves_only(carried, terminator, number):
            terminator.operands[number] = carried


def _serves_only(value: Any, terminator: Any, number: int) -> bool:
    """Whether nothing but the operand `number` of `terminator` depends on `value`."""
    left, seen = [value], {value}
    while left:
        for use in left.pop().uses:
            user = use.owner.operation
            if user == terminator:
                if use.operand_number != number:
                    return False
                continue
            if user.parent != terminator.parent or not user.name.startswith(_PURE):
                return False
            left += (result for result in user.results if result not in seen)
            seen.update(user.results)
    return True


def _iterations(loop: Any) -> range | None:
    """The induction variable's values, if the loop is to be written out."""
    carried = [value.type for value in loop.results]
    if not any(isinstance(kind, ir.RankedTensorType) for kind in carried):
        return None
    if "llvm.loop_annotation" in loop.attributes or "unsignedCmp" in loop.attributes:
        return None
    *body, _ = loop.regions[0].blocks[0].operations
    if not all(op.operation.name.startswith(_PURE) or op.operation.name in _SIMPLE for op in body):
        return None
    if any("isVolatile" in op.attributes and bool(op.attributes["isVolatile"].value) for op in body):
        return None
    bounds = [_constant(value) for value in list(loop.operands)[:3]]
    if None in bounds or bounds[2] < 1:
        return None
    iterations = range(*bounds)
    return (
        iterations
        if len(iterations) <= MAX_ITERATIONS and len(iterations) * len(body) <= MAX_OPERATIONS
        else None
    )


def _constant(value: Any) -> Any:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def _write_out(loop: Any, iterations: range) -> None:
    block = loop.regions[0].blocks[0]
    induction, *carried = block.arguments
    *body, terminator = (operation.operation for operation in block.operations)
    values = list(loop.operands)[3:]
    at = ir.InsertionPoint(loop)
    for iteration in iterations:
        attribute = ir.IntegerAttr.get(induction.type, iteration)
        number = ir.Operation.create(
            "arith.constant", [induction.type], attributes={"value": attribute}, loc=loop.location, ip=at
        )
        known = {induction: number.result, **dict(zip(carried, values, strict=True))}
        for operation in body:
            copy = operation.clone(ip=at)
            for place, operand in enumerate(operation.operands):
                if operand in known:
                    copy.operands[place] = known[operand]
            known.update(zip(operation.results, copy.results, strict=True))
        values = [known.get(value, value) for value in terminator.operands]
    for result, value in zip(loop.results, values, strict=True):
        result.replace_all_uses_with(value)
    loop.erase()
