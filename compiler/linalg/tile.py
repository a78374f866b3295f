"""The tile of a structured access, its block of memory, and the addresses of its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.operations import StructuredAccess
from triton_porting_kit.compiler.dialect.types import element_of, shape_of

from .expansion import Text, memref_type
from .nests import constant
from .rewriting import Rewriting

UNKNOWN = "?"


def kind_of(value: Any) -> str:
    """The type of a value as text."""
    return str(value.type)


class Tile:
    """The operands of a structured access as names of a function's parameters, and the element's address."""

    def __init__(self, rewriting: Rewriting, op: StructuredAccess[Any], body: Text) -> None:
        self.op, self.body = op, body
        tile = op.tile
        self.shape, self.element = shape_of(tile) or (), element_of(tile)
        """The sizes, and the type of an element."""
        rewriting.point_to(op, self.element)
        names = rewriting.names(op)
        self.base = names["base"][0]
        self.strides, self.low, self.high = names["strides"], names["low"], names["high"]
        self._wraps = list(zip(names["wrap_start"], names["wrap_size"], strict=True))
        self.mask = next(iter(names["mask"]), None)
        self.last = next(iter(names.get("other") or names.get("value") or ()), None)
        self.offset = rewriting.shifted(body, op, body.index(names["offset"][0]))
        self.kind = str(op.base.type)
        strides = op.by_name()["strides"]
        self._repeats = rewriting.convention.llvm_19 and any(
            size > 1 and _is_zero(stride) for size, stride in zip(self.shape, strides, strict=True)
        )

        # IREE allocates what has known strides that the type does not tell, for which it has no heap.
        self._known_strides = [
            _known_stride(size, constant(stride)) for size, stride in zip(self.shape, strides, strict=True)
        ]

    @property
    def layout(self) -> str:
        """The layout of `view`, and of parts of it."""
        return f"strided<[{', '.join(self._known_strides)}], offset: ?>"

    @property
    def is_block(self) -> bool:
        """Whether the elements in bounds are a block of memory with constant strides. LLVM 19 refuses 0."""
        return self.mask is None and not self.op.wrap_dims and not self._repeats

    def view(self) -> tuple[str, str]:
        """The block of memory and its type, as if all of it were in bounds."""
        body = self.body
        strides = [
            body.index(stride) if known == UNKNOWN else known
            for stride, known in zip(self.strides, self._known_strides, strict=True)
        ]
        kind = memref_type(self.shape, self.element, self.layout)
        sizes = ", ".join(map(str, self.shape))
        view = body.let(
            f"memref.reinterpret_cast {self.base} to offset: [{self.offset}], sizes: [{sizes}], "
            f"strides: [{', '.join(strides)}] : {self.kind} to {kind}"
        )
        return view, kind

    def bounds(self) -> tuple[list[str], list[str]]:
        """First indices in bounds, and how many, in each dimension."""
        body = self.body
        low = [
            "0" if constant(first) == 0 else body.index(name)
            for name, first in zip(self.low, self.op.low, strict=True)
        ]
        zero = body.constant(0)
        counts = []
        for first, name in zip(low, self.high, strict=True):
            difference = body.index(name)
            if first != "0":
                difference = body.let(f"arith.subi {difference}, {first} : index")
            counts.append(body.let(f"arith.maxsi {difference}, {zero} : index"))
        return low, counts

    def static(self, counts: list[str]) -> list[str]:
        """The counts of `bounds`, those that are known as numbers."""
        found = []
        for name, low, high in zip(counts, self.op.low, self.op.high, strict=True):
            first, last = constant(low), constant(high)
            known = first is not None and last is not None and last > first
            found.append(str(last - first) if known else name)  # type: ignore[operator]
        return found

    def part(self, source: str, kind: str, low: list[str], counts: list[str], layout: str) -> tuple[str, str]:
        """The elements in bounds of a memref."""
        dynamic = memref_type(sizes_of(counts), self.element, layout)
        ones = ", ".join("1" for _ in self.shape)
        view = self.body.let(
            f"memref.subview {source}[{', '.join(low)}] [{', '.join(counts)}] [{ones}] : {kind} to {dynamic}"
        )
        return view, dynamic

    def address(self, indices: Sequence[str]) -> str:
        """The position of an element that is tested on its own, in elements from the base."""
        body = self.body
        total = self.offset
        for dimension, (index, stride) in enumerate(zip(indices, self.strides, strict=True)):
            if dimension in self.op.wrap_dims:
                start, size = self._wraps[self.op.wrap_dims.index(dimension)]
                moved = body.let(f"arith.addi {body.index(start)}, {index} : index")
                index = body.let(f"arith.remsi {moved}, {body.index(size)} : index")
            step = body.let(f"arith.muli {index}, {body.index(stride)} : index")
            total = body.let(f"arith.addi {total}, {step} : index")
        return total

    def is_accessed(self, indices: Sequence[str], mask: str | None) -> str:
        """i1: whether an element is in bounds and its mask is set."""
        body = self.body
        found = mask or body.constant(1, "i1")
        for index, low, high in zip(indices, self.low, self.high, strict=False):
            above = body.let(f"arith.cmpi sge, {index}, {body.index(low)} : index")
            below = body.let(f"arith.cmpi slt, {index}, {body.index(high)} : index")
            found = body.let(f"arith.andi {found}, {above} : i1")
            found = body.let(f"arith.andi {found}, {below} : i1")
        return found

    def one(self, position: str) -> tuple[str, str]:
        """One element of memory, as a memref of rank 1."""
        return one_element(self.body, self.base, self.kind, self.element, position)


def sizes_of(counts: Sequence[str]) -> list[str]:
    """The sizes of a type for counts, which are numbers or names of values."""
    return [count if count.isdigit() else UNKNOWN for count in counts]


def _known_stride(size: int, stride: int | None) -> str:
    """A stride as in a type. LLVM 19 refuses 0; the stride of a dimension of one element does not matter."""
    if size == 1 and not stride:
        return "1"
    return UNKNOWN if stride is None else str(stride)


def _is_zero(value: Any) -> bool:
    owner = value.owner
    return getattr(owner, "name", "") == "arith.constant" and int(owner.attributes["value"].value) == 0


def one_element(body: Text, base: str, kind: str, element: str, position: str) -> tuple[str, str]:
    """The element at `position` from `base`, as a memref of one element, and its type."""
    made = memref_type([1], element, "strided<[1], offset: ?>")
    view = body.let(
        f"memref.reinterpret_cast {base} to offset: [{position}], sizes: [1], strides: [1] : {kind} to {made}"
    )
    return view, made


def zero(body: Text, element: str) -> str:
    """0 of an element type."""
    return body.constant("0.0" if element.startswith(("f", "bf")) else 0, element)
