"""Sums of products that a loop carries, kept in the memory of sums from before the loop until behind it.

A loop carries sums if a product's result is only yielded, and its initial value is the carried one, or made of it
element by element (as attention scales what it has summed up). The core must access the memory of sums. Then the loop
carries nothing: the product adds to the buffer, in which the core changes what has to be changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.chips.description import MatrixUnit
from triton_porting_kit.compiler.dialect import ELEMENTWISE
from triton_porting_kit.toolchain.mlir import ir

from .editing import Editor, bytes_of
from .loops import without_carried


@dataclass(frozen=True)
class Resident:
    """The sums of one product in a loop: their buffer, and their value at the start of an iteration."""

    sums: Any
    before: Any

    def update(self, editor: Editor, initial: Any) -> None:
        """Change the sums to the product's initial value."""
        if initial != self.before:
            editor.write(self.sums, initial)

    def result(self, editor: Editor, kind: Any) -> Any:
        """The sums behind the product."""
        return editor.read(self.sums, kind)


def residents(editor: Editor, unit: MatrixUnit, products: Sequence[Any]) -> dict[Any, Resident]:
    """The products whose sums stay, as far as their memory has room beside the sums of the others."""
    memory = editor.chip.memory(unit.sums)
    found: dict[Any, Resident] = {}
    if not memory.core_access:
        return found
    sizes = {product: bytes_of(product.results[0]) for product in products}
    numbers = {product: number for product in products if (number := _carried(product)) is not None}
    room = editor.chip.local_bytes(memory) - max(
        (size for product, size in sizes.items() if product not in numbers), default=0
    )
    for product, number in numbers.items():
        if sizes[product] <= room:
            room -= sizes[product]
            found[product] = _keep(editor, unit, product, number)
    return found


def _carried(product: Any) -> int | None:
    """The number of the loop's carried value that a product adds to; None if it does not add to one."""
    loop = product.parent
    if loop is None or loop.name != "scf.for":
        return None
    uses = list(product.results[0].uses)
    if len(uses) != 1 or uses[0].owner.name != "scf.yield":
        return None
    number = int(uses[0].operand_number)
    value: Any = loop.regions[0].blocks[0].arguments[1 + number]
    while True:
        uses = list(value.uses)
        if len(uses) != 1:
            return None
        user = uses[0].owner.operation
        if user == product:
            return number if uses[0].operand_number == 2 else None
        if user.name not in ELEMENTWISE or user.parent != loop:
            return None
        value = user.results[0]


def _keep(editor: Editor, unit: MatrixUnit, product: Any, number: int) -> Resident:
    loop = product.parent.operation
    result = loop.results[number]
    kind = result.type
    editor.before(loop)
    sums = editor.buffer(tuple(kind.shape), str(kind.element_type), "sums", unit.sums)
    editor.write(sums, loop.operands[3 + number])
    block = loop.regions[0].blocks[0]
    editor.at = ir.InsertionPoint.at_block_begin(block)
    before = editor.read(sums, kind)
    block.arguments[1 + number].replace_all_uses_with(before)
    editor.at = ir.InsertionPoint.after(loop)
    result.replace_all_uses_with(editor.read(sums, kind))
    without_carried(loop, number)
    return Resident(sums, before)
