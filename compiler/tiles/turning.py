"""Turns products so that reductions of their rows are reductions of columns: no vector holds what is to be combined.

A tile whose rows are reduced (`tl.max(scores, 1)`) lies along vectors, and each row ends in a reduction within a
vector. The transposed product, of the operands in the other order, has the same sums. What is computed from it,
element by element, by reductions, and up to other products, is transposed with it. The matrix unit transposes
operands while it reads them, so nothing is moved.
"""

from __future__ import annotations

from typing import Any

from triton_porting_kit.chips.description import ChipDescription, MatrixUnit
from triton_porting_kit.compiler.dialect import ELEMENTWISE
from triton_porting_kit.compiler.dialect.operations import Reduce
from triton_porting_kit.toolchain.mlir import ir

from .editing import Editor, element_of, functions, nested, shape_of
from .products import extent_of
from .residents import is_zero

_MADE = ("arith.constant", "tensor.splat", "linalg.broadcast", "linalg.transpose")
"""What a transposed tensor is made of anew, beside element-wise operations and the product itself."""


def turn_products(module: Any, chip: ChipDescription) -> None:
    """Turn the products of a structured module, in MLIR's bindings, in place."""
    unit = chip.matrix
    if unit is None or not unit.transposes:
        return
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            for operation in list(nested(function.regions[0].blocks[0])):
                if operation.name == "linalg.matmul" and _may_turn(editor, unit, operation):
                    region = _Region(operation)
                    if region.found:
                        _Turning(editor, region).run()


def _may_turn(editor: Editor, unit: MatrixUnit, product: Any) -> bool:
    """Whether the unit takes all of the operands at once, in either order, and adds them to nothing."""
    a, b, initial = product.operands
    if element_of(a) != element_of(b) or not is_zero(initial):
        return False
    extents = (extent_of(editor, unit, product, turned=turned) for turned in (False, True))
    return all(extent is not None and extent.step == extent.k for extent in extents)


class _Region:
    """What is transposed with a product: the tensors of its shape that are computed from it, and what uses them.

    `found`: it can be, and the rows of a tensor are reduced, but no columns.
    """

    def __init__(self, product: Any) -> None:
        self.product = product
        self.operations = [product]
        self.reductions: list[Any] = []
        self.uses: list[tuple[Any, int]] = []
        """Operands of other products, and of transpositions."""
        seen = {product}
        possible = True
        for operation in self.operations:  # which grows
            for use in operation.results[0].uses:
                user, number = use.owner.operation, int(use.operand_number)
                if user.name in ELEMENTWISE and len(user.results) == 1:
                    if user not in seen:
                        seen.add(user)
                        self.operations.append(user)
                elif Reduce.isa(user) and len(user.operands) == 1:
                    self.reductions.append(user)
                elif user.name == "linalg.matmul" and number < 2:
                    self.uses.append((user, number))
                else:
                    possible = False
        self._block = product.block
        self._inside = seen
        self.found = (
            possible
            and bool(self.reductions)
            and all(Reduce(each).axis == 1 for each in self.reductions)
            and all(operation.block == self._block for operation in self.operations)
            and all(map(self._turns, (v for op in self.operations[1:] for v in op.operands)))
        )

    def _turns(self, value: Any) -> bool:
        """Whether a tensor can be made transposed."""
        if shape_of(value) is None:
            return True
        owner = getattr(value.owner, "operation", None)
        if owner is None or owner in self._inside:
            return owner is not None
        if owner.name == "arith.constant":
            return bool(owner.attributes["value"].is_splat)
        if owner.name == "linalg.broadcast":
            return len(shape_of(owner.operands[0]) or ()) == 1
        if owner.name in ELEMENTWISE:
            return len(owner.results) == 1 and all(map(self._turns, owner.operands))
        return owner.name in _MADE


class _Turning:
    """Rewrites a region in place."""

    def __init__(self, editor: Editor, region: _Region) -> None:
        self._editor = editor
        self._region = region
        self._turned: dict[Any, Any] = {}
        """Transposed tensors by what they are the transposed ones of."""

    def run(self) -> None:
        region = self._region
        order = {
            operation.operation: number for number, operation in enumerate(region.product.block.operations)
        }
        operations = sorted(region.operations, key=lambda operation: order[operation])
        for operation in operations:
            self._of(operation.results[0])
        for reduction in region.reductions:
            reduction.operands[0] = self._of(reduction.operands[0])
            reduction.attributes["axis"] = self._editor.integer(0, ir.IntegerType.get_signless(32))
        for user, number in region.uses:
            self._editor.before(user)
            user.operands[number] = self._transposed(self._of(user.operands[number]))
        before = [
            v.owner for operation in operations for v in operation.operands if v.owner not in operations
        ]
        for operation in reversed(operations):
            operation.erase()
        for owner in dict.fromkeys(
            before
        ):  # what nothing needs any more would be a second use of what it is made of
            if owner.name in _MADE and not any(True for _ in owner.results[0].uses):
                owner.erase()

    def _of(self, value: Any) -> Any:
        """The transposed tensor; a scalar itself."""
        if shape_of(value) is None:
            return value
        if value not in self._turned:
            self._turned[value] = self._made(value)
        return self._turned[value]

    def _made(self, value: Any) -> Any:
        operation = value.owner.operation
        operands = list(operation.operands)
        if operation.name in ELEMENTWISE:
            operands = [self._of(operand) for operand in operands]
        editor = self._editor.before(operation)
        kind = value.type
        shape = (kind.shape[1], kind.shape[0])
        turned = editor.types.tensor(shape, kind.element_type)
        if operation == self._region.product:
            return self._product(operation, turned)
        if operation.name == "linalg.transpose":
            return operands[0]
        if operation.name == "linalg.broadcast":
            (added,) = operation.attributes["dimensions"]
            return editor.broadcast(operands[0], shape, [1 - added])
        attributes = {each if isinstance(each, str) else each.name for each in operation.attributes}
        given = {name: operation.attributes[name] for name in attributes}
        if operation.name == "arith.constant":
            literal = operation.attributes["value"].get_splat_value()
            given["value"] = ir.DenseElementsAttr.get_splat(turned, literal)
        return editor.value(operation.name, operands, turned, given)

    def _product(self, product: Any, kind: Any) -> Any:
        a, b, initial = product.operands
        operands = [self._transposed(b), self._transposed(a), self._of(initial)]
        made = product.clone(ip=ir.InsertionPoint(product)).operation
        for number, operand in enumerate(operands):
            made.operands[number] = operand
        made.results[0].set_type(kind)
        return made.results[0]

    def _transposed(self, value: Any) -> Any:
        """The transposition of a matrix, or what it is one of."""
        owner = getattr(value.owner, "operation", None)
        if owner is not None and owner.name == "linalg.transpose":
            return owner.operands[0]
        rows, columns = shape_of(value) or ()
        return self._editor.transpose(value, (columns, rows), [1, 0])
