"""Early returns: branches between blocks become nested scf.if."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.toolchain import mlir
from triton_porting_kit.toolchain.mlir import ir


def structure_branches(module: Any) -> None:
    """Turn control flow between blocks of the module's functions, if there is any, into scf.if."""
    if not _has_branches(module.operation):
        return
    mlir.run_passes(module, "builtin.module(func.func(lift-cf-to-scf))")
    switches: list[Any] = []

    def collect(operation: Any) -> Any:
        if operation.name == "scf.index_switch":
            switches.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for switch in switches:
        _switch_to_ifs(switch)


def _has_branches(operation: Any) -> bool:
    found = False

    def look(inner: Any) -> Any:
        nonlocal found
        found = found or any(len(region.blocks) > 1 for region in inner.regions)
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    operation.walk(look)
    return found


def _switch_to_ifs(switch: Any) -> None:
    """scf.index_switch -> a chain of scf.if, one per case."""
    cases = list(ir.DenseI64ArrayAttr(switch.attributes["cases"]))
    selector = switch.operands[0]
    kinds = [result.type for result in switch.results]
    place: Any = ir.InsertionPoint(switch)
    outermost: Any = None
    block: Any = None
    for case, region in zip(cases, list(switch.regions)[1:], strict=True):
        chosen = _equals(selector, case, place, switch.location)
        branch = ir.Operation.create(
            "scf.if", results=kinds, operands=[chosen], regions=2, loc=switch.location, ip=place
        )
        if block is not None:
            ir.Operation.create("scf.yield", operands=list(branch.results), loc=switch.location, ip=place)
        outermost = outermost or branch
        region.blocks[0].append_to(branch.regions[0])
        if case == cases[-1]:
            switch.regions[0].blocks[0].append_to(branch.regions[1])
        else:
            block = branch.regions[1].blocks.append()
            place = ir.InsertionPoint(block)
    for old, new in zip(switch.results, outermost.results, strict=True):
        old.replace_all_uses_with(new)
    switch.erase()


def _equals(selector: Any, case: int, place: Any, location: Any) -> Any:
    index = ir.IndexType.get()
    constant = ir.Operation.create(
        "arith.constant",
        results=[index],
        attributes={"value": ir.IntegerAttr.get(index, case)},
        loc=location,
        ip=place,
    )
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    return ir.Operation.create(
        "arith.cmpi",
        results=[ir.IntegerType.get_signless(1)],
        operands=[selector, constant.result],
        attributes={"predicate": predicate},
        loc=location,
        ip=place,
    ).result
