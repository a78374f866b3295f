"""The loops of a kernel, distributed over the work-items of a work-group."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.abi import kernel
from triton_porting_kit.compiler.artefacts import Parsed, mlir_module, parse_mlir, verify
from triton_porting_kit.compiler.cpp.spaces import address_spaces
from triton_porting_kit.compiler.simt.accesses import Survey
from triton_porting_kit.compiler.simt.distribution import Distribution
from triton_porting_kit.compiler.simt.work_group import SLOT, Group
from triton_porting_kit.compiler.simt.writer import Writer
from triton_porting_kit.compiler.source_comments import commented
from triton_porting_kit.toolchain import mlir

_SCRATCH, _BEGIN = 1, 2
"""Positions of parameters of the kernel's function."""


def distribute(loops: object, work_items: int, local_bytes: int, sub_group: int = 1) -> Parsed:
    """A loops artefact, or its text, whose loops over points were marked, for `work_items` work-items.

    `work_items` is a power of two above 1. A sub-group has `sub_group` of them, a power of two; 1 if there are none. A
    kernel calls the routines `abi.kernel.WORK_ITEM` and `abi.kernel.BARRIER`, or also those for sub-groups. It
    exports ``NAME__work_group``: the work-items; 1 if scratch, which belongs to a work-group, takes at most
    `local_bytes` and can be in local memory; and `sub_group`, or 1 if sub-groups may have any size.
    """
    text = str(loops)
    module = mlir_module(loops)
    with module.context:
        _rewrite(module, work_items, local_bytes, sub_group)
        verify(module)
    result = commented(module, text)
    return Parsed(result, parse_mlir(result))


class _TwoSpaces(Exception):
    """A pointer may be in scratch or elsewhere."""


def _rewrite(module: Any, work_items: int, local_bytes: int, sub_group: int) -> None:
    function = next(op for op in _top(module) if op.name == "llvm.func" and len(op.regions[0].blocks))
    name = str(function.attributes["sym_name"]).strip('"')
    size = next(op for op in _top(module) if str(op.attributes["sym_name"]) == f'"{name}{kernel.SCRATCH}"')
    scratch, cleared = map(int, mlir.ir.DenseIntElementsAttr(size.attributes["value"]))
    body = function.regions[0].blocks[0]
    try:
        spaces = address_spaces(function, lambda operation, what: _TwoSpaces(), {_SCRATCH: "local"})
        apart = True
    except _TwoSpaces:
        spaces, apart = address_spaces(function, lambda operation, what: _TwoSpaces()), False
    survey = Survey(spaces)
    survey.of(function)
    begin = body.arguments[_BEGIN]
    programs = next((view.operation for view in body.operations if _is_over(view.operation, begin)), None)
    writer = Writer().before(body.operations[0].operation)
    item = writer.call(kernel.WORK_ITEM, mlir.ir.IntegerType.get_signless(64)).result
    first = writer.equal(item, writer.integer(0))
    slots = writer.address(body.arguments[_SCRATCH], scratch)
    distribution = Distribution(survey, writer, item, work_items)
    group = Group(survey, writer, distribution, first, slots, programs if apart else None, sub_group)
    group.block(body)
    total = scratch + group.used * SLOT
    size.attributes["value"] = mlir.ir.Attribute.parse(f"dense<[{total}, {cleared}]> : tensor<2xi64>")
    routines = [f"@{kernel.BARRIER}()"]
    if group.uses_sub_groups:
        item.owner.attributes["callee"] = mlir.ir.FlatSymbolRefAttr.get(kernel.SUB_GROUP_ITEM)
        routines += [f"@{kernel.SUB_GROUP_BARRIER}()", f"@{kernel.SUB_GROUP_ITEM}() -> i64"]
    else:
        routines.append(f"@{kernel.WORK_ITEM}() -> i64")
    numbers = [work_items, int(apart and total <= local_bytes), sub_group if group.uses_sub_groups else 1]
    for line in (
        f"llvm.mlir.global external constant @{name}{kernel.WORK_GROUP}(dense<{numbers}> : tensor<3xi64>) : "
        "!llvm.array<3 x i64>",
        *(f"llvm.func {routine}" for routine in routines),
    ):
        mlir.ir.InsertionPoint(function).insert(mlir.ir.Operation.parse(line))


def _top(module: Any) -> list[Any]:
    return [view.operation for view in module.body.operations]


def _is_over(operation: Any, begin: Any) -> bool:
    """Whether an operation is the loop over programs."""
    return bool(operation.name == "scf.for" and operation.operands[0] == begin)
