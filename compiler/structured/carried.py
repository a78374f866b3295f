"""Pointers and index tensors that a loop carries, or that a branch or select chooses between.

Each such value gets a form that all of its sources share. At first, only a scalar offset is assumed to differ between
them. If the sources contradict that, the next weaker form is assumed, and the analysis is repeated. Forms, from strong
to weak, with what is carried instead of the tensor:

    offset   same base, strides and wraps    i64 offset in elements
    base     same strides and wraps          !llvm.ptr
    moved    the first, moved by scalars     i64 offset in elements from the first
    tensor   same base                       tensor of i64 offsets in elements
    bytes    nothing in common               tensor of i64 addresses
    opaque   (integers) not affine           the tensor itself, unchanged
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from triton_porting_kit.toolchain.mlir import ir

from .affine import Affine, Pointer
from .analysis import CARRIERS, Analysis
from .poly import ZERO, Poly


@dataclass(eq=False, repr=False)
class Carried:
    """One value that an operation passes on, under each of its names."""

    targets: list[Any]
    """SSA values (results, block arguments) that hold it."""
    sources: list[tuple[Any, int]]
    """The operands that it comes from: (operation, operand number)."""
    form: str = "offset"
    template: Any = None
    """`Affine` or `Pointer` of the first source."""

    @property
    def source_values(self) -> list[Any]:
        return [operation.operands[number] for operation, number in self.sources]

    def is_first(self, holder: Any) -> bool:
        """Whether the operation holds the first source, which a loop starts from."""
        return bool(holder == self.sources[0][0])


def terminator(region: Any) -> Any:
    """The operation that ends a region of one block."""
    operations = region.blocks[0].operations
    return operations[len(operations) - 1]


def _carried_by(operation: Any) -> list[Carried]:
    """Every value that a carrier operation passes on, whatever its type."""
    name = operation.operation.name
    results = list(operation.results)
    regions = operation.regions
    if name == "scf.for":
        arguments = list(regions[0].blocks[0].arguments)[1:]
        end = terminator(regions[0])
        return [
            Carried([argument, result], [(operation, 3 + i), (end, i)])
            for i, (argument, result) in enumerate(zip(arguments, results, strict=True))
        ]
    if name == "scf.while":
        condition, end = terminator(regions[0]), terminator(regions[1])
        before = [
            Carried([argument], [(operation, i), (end, i)])
            for i, argument in enumerate(regions[0].blocks[0].arguments)
        ]
        after = [
            Carried([argument, result], [(condition, 1 + i)])
            for i, (argument, result) in enumerate(zip(regions[1].blocks[0].arguments, results, strict=True))
        ]
        return before + after
    if name == "scf.if":
        if not results:
            return []  # there may be no second region
        ends = [terminator(region) for region in regions]
        return [Carried([result], [(end, i) for end in ends]) for i, result in enumerate(results)]
    return [Carried([results[0]], [(operation, 1), (operation, 2)])]


class CarriedValues:
    """Decides the form of carried values when the analysis asks for them."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._sources: dict[Any, dict[Any, list[Any]]] = {}
        self.moved: dict[Any, Carried] = {}
        """By target: values of the form `moved`."""
        analysis.decide = self.decide
        analysis.sources = self.sources

    def sources(self, value: Any) -> list[Any] | None:
        """The values that a carrier's result or block argument may come from; None for other values."""
        owner = value.owner
        operation = (owner.owner if isinstance(owner, ir.Block) else owner).operation
        if operation.name not in CARRIERS:
            return None
        known = self._sources.get(operation)
        if known is None:
            known = {target: c.source_values for c in _carried_by(operation) for target in c.targets}
            self._sources[operation] = known
        return known.get(value)

    def of(self, operation: Any) -> list[Carried]:
        """The values of a carrier operation whose form changes."""
        key = ("carried", operation.operation)
        if key not in self._analysis.memo:
            self.decide(operation)
        return [c for c in self._analysis.memo[key] if c.form != "opaque"]

    def decide(self, operation: Any) -> None:
        """Find the forms and put them into the memo of the analysis."""
        analysis = self._analysis
        carried = [c for c in _carried_by(operation) if self._is_relevant(c)]
        elementwise = _is_elementwise_select(analysis, operation)
        for c in carried:
            if elementwise:
                c.form = "tensor" if analysis.types.info(c.targets[0]).is_pointer else "opaque"
        mark = len(analysis.memo)
        while True:
            for c in carried:
                self._assume(operation, c)
            if all(self._holds(c) for c in carried):
                break
            for key in list(analysis.memo)[mark:]:
                del analysis.memo[key]
        analysis.memo["carried", operation.operation] = carried
        self.moved |= {target: c for c in carried if c.form == "moved" for target in c.targets}

    def _is_relevant(self, carried: Carried) -> bool:
        info = self._analysis.types.info(carried.targets[0])
        return info.is_pointer or (info.is_index and info.shape is not None)

    def _assume(self, operation: Any, carried: Carried) -> None:
        analysis = self._analysis
        first = carried.source_values[0]
        info = analysis.types.info(first)
        if not info.is_pointer:
            carried.template = template = analysis.affine(first)
            if template is None or template.assumed or not self._is_outside(template, operation):
                carried.form = "opaque"
            known = template if carried.form != "opaque" else None
            for target in carried.targets:
                analysis.memo[target] = known.at_offset(analysis.scalar(target)) if known else None
            return
        carried.template = pointer = analysis.pointer(first)
        self._weaken_to_fit(operation, carried, pointer)
        for target in carried.targets:
            analysis.memo[target] = self._pointer_form(carried, pointer, target)

    def _weaken_to_fit(self, operation: Any, carried: Carried, pointer: Pointer) -> None:
        index = pointer.index
        affine = index is not None and not index.is_open and self._is_outside(index, operation)
        based = pointer.base is not None and not defined_in(pointer.base, operation)
        if carried.form in ("offset", "base"):
            if not affine or pointer.base is None:
                carried.form = "moved" if operation.operation.name == "scf.for" else "tensor"
            elif not based:
                carried.form = "base"
        if carried.form in ("moved", "tensor") and not based:
            carried.form = "bytes"

    def _pointer_form(self, carried: Carried, pointer: Pointer, target: Any) -> Pointer:
        size = pointer.element_bytes
        if carried.form == "offset":
            assert pointer.index is not None
            return Pointer(pointer.base, pointer.index.at_offset(self._analysis.scalar(target)), size)
        if carried.form == "base":
            assert pointer.index is not None
            return Pointer(target, pointer.index.at_offset(ZERO), size)
        return Pointer(None if carried.form == "bytes" else pointer.base, None, size)

    def _holds(self, carried: Carried) -> bool:
        """Whether all sources have the assumed form; if not, weaken the assumption."""
        if carried.form in ("opaque", "bytes"):
            return True
        for value in carried.source_values[1:]:
            if isinstance(carried.template, Affine):
                found = self._analysis.affine(value)
                if found is None or found.assumed or not found.same_shape_as(carried.template):
                    carried.form = "opaque"
                    return False
                continue
            if carried.form == "moved":
                if self.movement(carried, value) is None:
                    carried.form = "tensor"
                    return False
                continue
            pointer = self._analysis.pointer(value)
            form = _common_form(carried.template, pointer, carried.form)
            if form != carried.form:
                carried.form = form
                return False
        return True

    def movement(self, carried: Carried, value: Any) -> Poly | None:
        """By how many elements an iteration moves all pointers of `carried` to `value`; None if they differ."""
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "tt.addptr":
            return None
        source, offset = owner.operands
        found = self._analysis.moves_by(offset) if source == carried.targets[0] else None
        same = found is not None and found.is_uniform and not found.is_wrapped and not found.assumed
        return found.offset if found is not None and same else None

    def _is_outside(self, affine: Affine, operation: Any) -> bool:
        """Whether the strides, wraps and assumptions can be used outside `operation`."""
        scalars = self._analysis.scalars.values(affine.at_offset(ZERO).scalars)
        return not any(defined_in(value, operation) for value in scalars)


def _is_elementwise_select(analysis: Analysis, operation: Any) -> bool:
    if operation.operation.name != "arith.select":
        return False
    return analysis.types.info(operation.operands[0]).shape is not None


def _common_form(first: Pointer, other: Pointer, form: str) -> str:
    """The strongest form that both pointers have, at most `form`."""
    same_base = first.base is not None and other.base is not None and first.base == other.base
    same_shape = (
        first.index is not None
        and other.index is not None
        and first.index.same_shape_as(other.index)
        and set(other.index.assumed) <= set(first.index.assumed)
    )
    if form == "offset" and same_base and same_shape:
        return "offset"
    if form in ("offset", "base") and same_shape and other.base is not None:
        return "base"
    return "tensor" if same_base and form != "bytes" else "bytes"


def defined_in(value: Any, operation: Any) -> bool:
    """Whether `value` is defined in a region of `operation` (or is its result)."""
    inside = operation.operation
    owner = value.owner
    current = owner.owner if isinstance(owner, ir.Block) else owner
    while current is not None:
        current = current.operation
        if current == inside:
            return True
        current = current.parent
    return False
