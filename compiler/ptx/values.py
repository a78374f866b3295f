"""Creates element-wise operations on scalars or on whole tensors: what instructions are translated to."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from triton_porting_kit.compiler.dialect.operations import Function
from triton_porting_kit.toolchain.mlir import ir

Create = Callable[[str, Sequence[Any], Sequence[Any], dict[str, Any]], Sequence[Any]]
"""Creates an operation from its name, operands, types of results and attributes; returns the results."""

CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
TOWARD_ZERO = 3  # in upstream's enumeration of rounding modes


@functools.cache
def bits_of(kind: str) -> int:
    """The bits of an element type, ``i1`` to ``i64`` or a float such as ``bf16`` or ``f8E5M2``."""
    found = re.match(r"(?:i|bf|f)(\d+)", kind)
    assert found is not None, kind
    return int(found[1])


class Values:
    """Creates operations on elements, which are scalars if `shape` is None. Kinds are names of element types."""

    def __init__(self, create: Create, shape: tuple[int, ...] | None) -> None:
        self._create = create
        self.shape = shape

    @staticmethod
    def kind(value: Any) -> str:
        """The element type of a value."""
        return str(getattr(value.type, "element_type", value.type))

    def type(self, kind: str) -> Any:
        """The type of values of a kind."""
        element = ir.Type.parse(kind)
        return element if self.shape is None else ir.RankedTensorType.get(self.shape, element)

    def op(self, name: str, operands: Sequence[Any], kind: str, /, **attributes: Any) -> Any:
        """An operation with one result."""
        return self._create(name, operands, [self.type(kind)], attributes)[0]

    def function(self, name: str, operands: Sequence[Any], kind: str) -> Any:
        """A function of libdevice."""
        return self.op(Function.OPERATION_NAME, operands, kind, name=ir.StringAttr.get(name))

    def constant(self, value: float, kind: str) -> Any:
        """A constant; integers are given modulo 2 to the power of their bits."""
        element = ir.Type.parse(kind)
        if kind.startswith("i"):
            bits = bits_of(kind)
            number = int(value) % (1 << bits)
            signed = number - (1 << bits) if bits > 1 and number >> (bits - 1) else number
            attribute = ir.IntegerAttr.get(element, signed)
        else:
            attribute = ir.FloatAttr.get(element, value)
        if self.shape is not None:
            attribute = ir.DenseElementsAttr.get_splat(self.type(kind), attribute)
        return self._create("arith.constant", [], [self.type(kind)], {"value": attribute})[0]

    def _other(self, value: Any, like: Any) -> Any:
        return self.constant(value, self.kind(like)) if isinstance(value, int | float) else value

    def binary(self, name: str, a: Any, b: Any) -> Any:
        """An operation of two operands of one kind; the second may be a number."""
        return self.op(name, [a, self._other(b, a)], self.kind(a))

    def and_(self, a: Any, b: Any) -> Any:
        return self.binary("arith.andi", a, b)

    def or_(self, a: Any, b: Any) -> Any:
        return self.binary("arith.ori", a, b)

    def xor(self, a: Any, b: Any) -> Any:
        return self.binary("arith.xori", a, b)

    def not_(self, a: Any) -> Any:
        return self.xor(a, -1)

    def add(self, a: Any, b: Any) -> Any:
        return self.binary("arith.addi", a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return self.binary("arith.subi", a, b)

    def shift(self, name: str, a: Any, count: int) -> Any:
        """``shli``, ``shrui`` or ``shrsi`` by a number of bits below the width."""
        return self.binary(f"arith.{name}", a, count) if count else a

    def compare(self, predicate: str, a: Any, b: Any) -> Any:
        """An i1: ``slt`` and so on for integers, ``olt`` and so on for floats."""
        b = self._other(b, a)
        is_integer = self.kind(a).startswith("i")
        number = (CMPI if is_integer else CMPF).index(predicate)
        name = "arith.cmpi" if is_integer else "arith.cmpf"
        return self.op(
            name, [a, b], "i1", predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
        )

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """`a` where the condition is set, else `b`; one of them may be a number."""
        like = b if isinstance(a, int | float) else a
        a, b = self._other(a, like), self._other(b, like)
        return self.op("arith.select", [condition, a, b], self.kind(like))

    def as_kind(self, value: Any, kind: str) -> Any:
        """The bits of a value as another kind of the same width."""
        return value if self.kind(value) == kind else self.op("arith.bitcast", [value], kind)

    def as_bits(self, value: Any) -> Any:
        """The bits of a value as an integer."""
        return self.as_kind(value, f"i{bits_of(self.kind(value))}")

    def resized(self, value: Any, bits: int, *, signed: bool = False) -> Any:
        """The bits of a value in a wider or narrower integer."""
        value = self.as_bits(value)
        own = bits_of(self.kind(value))
        if own == bits:
            return value
        name = "arith.trunci" if own > bits else "arith.extsi" if signed else "arith.extui"
        return self.op(name, [value], f"i{bits}")

    def split(self, value: Any, count: int) -> list[Any]:
        """The parts of an integer, as integers; the lowest first."""
        value = self.as_bits(value)
        part = bits_of(self.kind(value)) // count
        return [self.resized(self.shift("shrui", value, index * part), part) for index in range(count)]

    def join(self, parts: Sequence[Any]) -> Any:
        """An integer made from parts of one width; the first is the lowest."""
        width = bits_of(self.kind(parts[0]))
        total = None
        for index, part in enumerate(parts):
            moved = self.shift("shli", self.resized(part, width * len(parts)), index * width)
            total = moved if total is None else self.or_(total, moved)
        return total

    def extended(self, value: Any, kind: str) -> Any:
        """A float as a wider kind."""
        return value if self.kind(value) == kind else self.op("arith.extf", [value], kind)

    def rounded(self, value: Any, kind: str, *, toward_zero: bool = False) -> Any:
        """A float as a narrower kind, to nearest even or toward zero."""
        if self.kind(value) == kind:
            return value
        mode = {"roundingmode": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), TOWARD_ZERO)}
        return self.op("arith.truncf", [value], kind, **(mode if toward_zero else {}))


def float_bits(value: float, kind: str) -> int:
    """The bits of a literal as a register of ``f32`` or ``f64``."""
    code = {"f32": ("<f", "<I"), "f64": ("<d", "<Q")}[kind]
    return int(struct.unpack(code[1], struct.pack(code[0], value))[0])
