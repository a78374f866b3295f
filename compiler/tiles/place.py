"""Gives every buffer an address: buffers that are in use at one time get different bytes of their memory.

Each memory is planned alone. The buffers are placed one after the other at the lowest address that no buffer in use at
the same time has; of a few orders, the one with the smallest plan is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from triton_porting_kit.chips.description import ChipDescription, Memory
from triton_porting_kit.compiler.loops.ir.program import Program, read_program
from triton_porting_kit.toolchain.mlir import ir

from .errors import Missing, out_of_memory
from .lifetimes import Lifetime, lifetimes
from .memories import SCRATCH_ALIGNMENT
from .plan import Placed, Plan


def _anywhere(_: Lifetime) -> int:
    return 0


def plan(module: Any, chip: ChipDescription) -> Plan:
    """The plan of a module of the stage ``tiles``, however large its memories would have to be."""
    return planned(read_program(module), chip)


def planned(
    program: Program,
    chip: ChipDescription,
    lowest: Mapping[str, Callable[[Lifetime], int]] = MappingProxyType({}),
) -> Plan:
    """The plan of a kernel. `lowest`: by memory, the lowest address that a buffer may have, 0 by default."""
    found = lifetimes(program)
    result = Plan(program)
    for memory in chip.local_memories:
        mine = [lifetime for lifetime in found if lifetime.memory == memory.name]
        alignment = chip.buffer_alignment(memory)
        result.buffers += arranged(mine, alignment, lowest.get(memory.name, _anywhere))
    return result


def place(module: Any, chip: ChipDescription, known: Plan | None = None) -> Plan:
    """Set the address of every buffer of a module, in MLIR's bindings, in place. `known`: the module's plan, if there
    is one already.

    Raises `OutOfOnChipMemory` if a memory is too small.
    """
    result = known or plan(module, chip)
    missing = [
        Missing(memory.name, result.used(memory.name), chip.local_bytes(memory))
        for memory in chip.local_memories
        if result.used(memory.name) > chip.local_bytes(memory)
    ]
    if missing:
        raise out_of_memory(result, missing)
    note_addresses(result)
    return result


def note_addresses(plan: Plan) -> None:
    """Set the addresses of a plan in its module."""
    with plan.program.module.context:
        kind = ir.IntegerType.get_signless(64)
        for placed in plan.buffers:
            placed.lifetime.handle.attributes["address"] = ir.IntegerAttr.get(kind, placed.address)


def placed_plan(module: Any) -> Plan:
    """The plan that a module of the stage ``placed`` holds."""
    program = read_program(module)
    buffers = [
        Placed(lifetime, int(lifetime.handle.attributes["address"].value)) for lifetime in lifetimes(program)
    ]
    return Plan(program, buffers)


def check_scratch(plan: Plan, chip: ChipDescription, memory: Memory, scratch: int) -> None:
    """Raise `OutOfOnChipMemory` if what vector code keeps does not fit behind the buffers, nor with them."""
    needed, there = plan.used(memory.name, aligned=SCRATCH_ALIGNMENT) + scratch, chip.local_bytes(memory)
    if needed > there and not plan.shares:
        raise out_of_memory(plan, [Missing(memory.name, needed, there)], scratch)


_ORDERS: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
    lambda life: (life.first,),
    lambda life: (-life.bytes, life.first),
    lambda life: (life.first - life.last, life.first),
    lambda life: ((life.first - life.last) * life.bytes, life.first),
)


def arranged(
    found: list[Lifetime], alignment: int, lowest: Callable[[Lifetime], int] = _anywhere
) -> list[Placed]:
    """The buffers of one memory in their places, in the order of the program, each at its `lowest` address or above."""
    plans = (_in_order(found, order, alignment, lowest) for order in _ORDERS)
    best = min(plans, key=lambda placed: max((p.end for p in placed), default=0))
    return sorted(best, key=lambda placed: (placed.lifetime.first, placed.address))


def _in_order(
    found: list[Lifetime],
    order: Callable[[Lifetime], tuple[int, ...]],
    alignment: int,
    lowest: Callable[[Lifetime], int],
) -> list[Placed]:
    placed: list[Placed] = []
    for lifetime in sorted(found, key=order):
        taken = sorted((other.address, other.end) for other in placed if other.lifetime.meets(lifetime))
        address = -(-lowest(lifetime) // alignment) * alignment
        for start, end in taken:
            if address + lifetime.bytes <= start:
                break
            address = max(address, -(-end // alignment) * alignment)
        placed.append(Placed(lifetime, address))
    return placed
