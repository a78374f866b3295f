"""The matrix products in a kernel, and the instructions of an architecture for them.

The required products are read from the IR of Triton's front end, before any stage of the backend. The instructions in
use are read from the disassembled code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from triton_porting_kit.conformance.code_objects.architectures import Architecture

LEAST = 16
"""The smallest number of rows and of columns of a result for which matrix instructions are required."""

_TENSOR = r"tensor<((?:\d+x)+)(\w+)>"
_DOT = re.compile(rf"tt\.dot ([^\n]*?) : {_TENSOR} \* {_TENSOR} -> {_TENSOR}")
_SCALED = re.compile(
    rf"tt\.dot_scaled ([^\n]*?) : {_TENSOR}(?:, {_TENSOR})? \* {_TENSOR}(?:, {_TENSOR})? -> {_TENSOR}"
)
_PRECISION = re.compile(r"inputPrecision = (\w+)")
_FORMATS = re.compile(r"lhs = (\w+) rhs = (\w+)")

_MATRIX = re.compile(
    r"v_s?(?:mfma|wmma|mfmac|wmmac)(?:_scale\d*|_ld_scale\w*)?_(?P<result>[a-z]+\d+)_\d+x\d+x\d+_?(?:\d+b_?)?"
    r"(?P<operands>[a-z]\w*?)(?:_1k)?(?:_e64|_twoaddr_\w+)?"
)
_MICROSCALING = frozenset({"e2m1", "e4m3", "e5m2"})
_OF_PRECISION = {
    "ieee": ("f32",),
    "tf32": ("xf32", "f32", "bf16"),
    "tf32x3": ("xf32", "f32", "bf16"),
    "bf16x3": ("bf16",),
    "bf16x6": ("bf16",),
}
"""The operand types of instructions that may implement products of fp32, by precision. Some precisions split numbers
into parts of a narrower type."""


@dataclass(frozen=True)
class Product:
    """A ``tl.dot`` or ``tl.dot_scaled`` of a kernel."""

    left: str
    """The element type in MLIR's syntax, such as ``bf16`` or ``f8E4M3FN``; for scaled products the format, ``e2m1``."""
    right: str
    rows: int
    columns: int
    depth: int
    """The number of products that are summed for each element of the result."""
    precision: str = "ieee"
    scaled: bool = False

    def __str__(self) -> str:
        precision = f" as {self.precision}" if self.left == "f32" else ""
        name = "tl.dot_scaled" if self.scaled else "tl.dot"
        return f"{name} of {self.rows}x{self.depth} {self.left} and {self.depth}x{self.columns} {self.right}{precision}"


def products_in(text: str) -> set[Product]:
    """Find the products in the text of a module of Triton's front end."""
    found = set()
    for match in _DOT.finditer(text):
        words, left, left_type, right, right_type, *_ = match.groups()
        precision = _PRECISION.search(words)
        found.add(
            Product(
                left_type,
                right_type,
                _extents(left)[-2],
                _extents(right)[-1],
                _extents(left)[-1],
                precision[1] if precision else "ieee",
            )
        )
    for match in _SCALED.finditer(text):
        words, left, _, _, _, right, *_ = match.groups()
        formats = _FORMATS.search(words)
        if formats:
            packed = 2 if formats[1] == "e2m1" else 1
            rows, depth = _extents(left)[-2:]
            found.add(Product(formats[1], formats[2], rows, _extents(right)[-1], depth * packed, scaled=True))
    return found


def _extents(text: str) -> list[int]:
    return [int(number) for number in text.split("x") if number]


def instructions_for(product: Product, architecture: Architecture) -> tuple[str, ...]:
    """The operand types of matrix instructions of which any can implement a product. Empty if the architecture has no
    instruction for its types, or the product is smaller than an instruction."""
    if product.rows < LEAST or product.columns < LEAST:
        return ()
    return tuple(
        name
        for kind, name in _candidates(product, architecture)
        if product.depth >= architecture.products.get(kind, 1 << 30)
    )


def _candidates(product: Product, architecture: Architecture) -> Iterator[tuple[str, str]]:
    """Candidate keys of the architecture's products, with the operand types in names of instructions."""
    kinds = (product.left, product.right)
    if product.scaled:
        if architecture.scaled and _MICROSCALING.issuperset(kinds):
            yield "f8f6f4", "f8f6f4"
    elif all(kind in architecture.fp8 for kind in kinds):
        left, right = (architecture.fp8[kind] for kind in kinds)
        yield "fp8", f"{left}_{right}"
        yield "fp8", f"{right}_{left}"  # for the transposed product
        yield "f8f6f4", "f8f6f4"
    elif kinds == ("f32", "f32"):
        yield from ((kind, kind) for kind in _OF_PRECISION.get(product.precision, ()))
    elif kinds == ("i8", "i8"):
        yield from (("i8", "i8"), ("iu8", "iu8"))
    elif kinds[0] == kinds[1]:
        yield kinds[0], kinds[0]


def operands_of(mnemonic: str) -> str:
    """The type of the operands of a matrix instruction (``bf16``, ``fp8_bf8``); empty for other instructions."""
    match = _MATRIX.fullmatch(mnemonic)
    return match["operands"] if match else ""


def matrix_instructions(mnemonics: Iterable[str]) -> Counter[str]:
    """The number of occurrences of each matrix instruction."""
    return Counter(name for name in mnemonics if operands_of(name))
