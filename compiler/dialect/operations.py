"""The operations of the dialect ``tpk``: those of Triton's that upstream's dialects do not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .schema import Kind, Op, Trait, V, all_of, flag, integer, integers, operand, optional, text, variadic
from .types import element_of, is_scalar, shape_of

SEMANTICS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("cta", "gpu", "sys")


class ProgramId(Op[V]):
    """The program's position in the grid along an axis, as i32."""

    OPERATION_NAME = "tpk.program_id"
    traits = Trait.POSITION
    axis = integer()

    def verify(self) -> Iterator[str]:
        yield from _axis_of_grid(self.axis)


class NumPrograms(Op[V]):
    """The grid's size along an axis, as i32."""

    OPERATION_NAME = "tpk.num_programs"
    traits = Trait.POSITION
    axis = integer()

    def verify(self) -> Iterator[str]:
        yield from _axis_of_grid(self.axis)


def _axis_of_grid(axis: int) -> Iterator[str]:
    if axis not in (0, 1, 2):
        yield f"a grid has no axis {axis}"


class Range(Op[V]):
    """start, start + 1, ... as a 1-D tensor of i32."""

    OPERATION_NAME = "tpk.range"
    traits = Trait.DEFERRABLE | Trait.MOVABLE
    start = integer(0)

    def verify(self) -> Iterator[str]:
        if element_of(self.result) != "i32" or len(shape_of(self.result) or ()) != 1:
            yield "its result must be a 1-D tensor of i32"


# --- memory --------------------------------------------------------------------------------------


class Access(Op[V]):
    """Attributes of every access: cache hints, and the order in which other threads observe it."""

    cache = text("")
    evict = text("")
    volatile = flag()
    sem = text("", choices=("", *SEMANTICS))
    scope = text("", choices=("", *SCOPES))
    segmented = True

    @property
    def tile(self) -> V:
        """The value whose type is that of the tile: the loaded or the stored one."""
        return self.result


class StructuredAccess(Access[V]):
    """The base of `Load` and `Store` (docs/architecture.md, "A structured access")."""

    base = operand(Kind.POINTER)
    offset = operand(Kind.I64)
    strides = variadic(Kind.I64)
    low = variadic(Kind.I64)
    high = variadic(Kind.I64)
    wrap_start = variadic(Kind.I64)
    wrap_size = variadic(Kind.I64)
    mask = optional(Kind.BOOLEANS)
    wrap_dims = integers()

    def verify(self) -> Iterator[str]:
        shape = shape_of(self.tile) or ()
        rank = len(shape)
        if len(self.strides) != rank:
            yield f"{len(self.strides)} strides for a tile of {rank} dimensions"
        for name, group in (("low", self.low), ("high", self.high)):
            if len(group) not in (0, rank):
                yield f"{len(group)} operands `{name}` for a tile of {rank} dimensions: give one per dimension, or none"
        if len(self.low) != len(self.high):
            yield "it has only one of `low` and `high`: bounds need both"
        wraps = len(self.wrap_dims)
        if len(self.wrap_start) != wraps or len(self.wrap_size) != wraps:
            yield f"{wraps} dimensions wrap, with {len(self.wrap_start)} starts and {len(self.wrap_size)} sizes"
        if any(not 0 <= d < rank for d in self.wrap_dims) or len({*self.wrap_dims}) != wraps:
            yield f"wrap_dims {list(self.wrap_dims)} are not dimensions of the tile"
        yield from _same_shape("mask", self.mask, self.tile)


class Load(StructuredAccess[V]):
    """A tile, or a scalar, from memory."""

    OPERATION_NAME = "tpk.load"
    traits = Trait.READS | Trait.DEFERRABLE
    other = optional()

    def verify(self) -> Iterator[str]:
        yield from super().verify()
        yield from _fill(self.other, self.result)


class Store(StructuredAccess[V]):
    """A tile, or a scalar, into memory."""

    OPERATION_NAME = "tpk.store"
    traits = Trait.WRITES
    result_count = 0
    value = operand()

    @property
    def tile(self) -> V:
        return self.value


class Gather(Access[V]):
    """Elements at explicit offsets from one base."""

    OPERATION_NAME = "tpk.gather"
    traits = Trait.READS | Trait.DEFERRABLE
    base = operand(Kind.POINTER)
    offsets = operand(Kind.INTEGERS)
    mask = optional(Kind.BOOLEANS)
    other = optional()
    byte_offsets = flag()

    def verify(self) -> Iterator[str]:
        yield from _same_shape("offsets", self.offsets, self.result)
        yield from _same_shape("mask", self.mask, self.result)
        yield from _fill(self.other, self.result)


class Scatter(Access[V]):
    """Elements to explicit offsets from one base."""

    OPERATION_NAME = "tpk.scatter"
    traits = Trait.WRITES
    result_count = 0
    base = operand(Kind.POINTER)
    offsets = operand(Kind.INTEGERS)
    mask = optional(Kind.BOOLEANS)
    value = operand()
    byte_offsets = flag()

    @property
    def tile(self) -> V:
        return self.value

    def verify(self) -> Iterator[str]:
        yield from _same_shape("offsets", self.offsets, self.value)
        yield from _same_shape("mask", self.mask, self.value)


class Atomic(Op[V]):
    """The base of the atomic operations."""

    traits = Trait.READS | Trait.WRITES
    base = operand(Kind.POINTER)
    offsets = operand(Kind.INTEGERS)
    byte_offsets = flag()
    sem = text("acq_rel", choices=SEMANTICS)
    scope = text("gpu", choices=SCOPES)

    def verify(self) -> Iterator[str]:
        yield from _same_shape("offsets", self.offsets, self.result)


class AtomicRmw(Atomic[V]):
    """Atomic read-modify-write; gives the old values, and 0 where the mask is not set."""

    OPERATION_NAME = "tpk.atomic_rmw"
    segmented = True
    value = operand()
    mask = optional(Kind.BOOLEANS)
    kind = text(choices=("add", "fadd", "max", "umax", "min", "umin", "and", "or", "xor", "exch"))

    def verify(self) -> Iterator[str]:
        yield from super().verify()
        yield from _same_type("value", self.value, self.result)
        yield from _same_shape("mask", self.mask, self.result)


class AtomicCas(Atomic[V]):
    """Atomic compare-and-swap, which compares bits; gives the old values."""

    OPERATION_NAME = "tpk.atomic_cas"
    compare = operand()
    value = operand()

    def verify(self) -> Iterator[str]:
        yield from super().verify()
        yield from _same_type("compare", self.compare, self.result)
        yield from _same_type("value", self.value, self.result)


class AtomicPoll(Atomic[V]):
    """Waits for each element to have its expected value, for `timeout` nanoseconds in all; gives whether it had."""

    OPERATION_NAME = "tpk.atomic_poll"
    segmented = True
    expected = operand()
    timeout = optional(Kind.I64)


# --- functions of elements, given by a region ----------------------------------------------------


class Reduce(Op[V]):
    """Any associative and commutative combination along a dimension, which is dropped."""

    OPERATION_NAME = "tpk.reduce"
    result_count = None
    region_count = 1
    inputs = variadic(Kind.TENSOR)
    axis = integer()

    def verify(self) -> Iterator[str]:
        shape = shape_of(self.inputs[0]) or ()
        yield from _along(self.axis, shape)
        if len(self.results) != len(self.inputs):
            yield f"{len(self.inputs)} inputs and {len(self.results)} results"
        kept = shape[: self.axis] + shape[self.axis + 1 :]
        for result in self.results:
            if (shape_of(result) or ()) != kept:
                yield f"a result must have the shape {list(kept)} of the inputs without dimension {self.axis}"


class Scan(Op[V]):
    """All prefixes of a combination along a dimension; the shape is kept."""

    OPERATION_NAME = "tpk.scan"
    result_count = None
    region_count = 1
    inputs = variadic(Kind.TENSOR)
    axis = integer()
    reverse = flag()

    def verify(self) -> Iterator[str]:
        yield from _along(self.axis, shape_of(self.inputs[0]) or ())
        if len(self.results) != len(self.inputs):
            yield f"{len(self.inputs)} inputs and {len(self.results)} results"
        for value, result in zip(self.inputs, self.results, strict=False):
            yield from _same_shape("results", result, value)


class Map(Op[V]):
    """A function of elements; or of `pack` elements of each input that are adjacent in row-major order."""

    OPERATION_NAME = "tpk.map"
    traits = Trait.DEFERRABLE
    result_count = None
    region_count = 1
    inputs = variadic()
    pack = integer(1)


class Yield(Op[V]):
    """Ends these regions."""

    OPERATION_NAME = "tpk.yield"
    traits = Trait.TERMINATOR
    result_count = 0
    values = variadic()


class Call(Op[V]):
    """A call, in such a region, of a function that is not inlined."""

    OPERATION_NAME = "tpk.call"
    result_count = None
    inputs = variadic()
    callee = text()


# --- functions of elements -----------------------------------------------------------------------


class Function(Op[V]):
    """A function of [libdevice](libdevice.md) that upstream has no operation for; its name begins with u if it takes
    unsigned integers.
    """

    OPERATION_NAME = "tpk.function"
    traits = Trait.DEFERRABLE | Trait.MOVABLE
    inputs = variadic()
    name = text()


class FpToFp(Op[V]):
    """Conversion to an 8-bit float, `rtne` or `rtz`, saturating as described in [conversions.md](conversions.md)."""

    OPERATION_NAME = "tpk.fp_to_fp"
    traits = Trait.DEFERRABLE | Trait.MOVABLE
    x = operand()
    rounding = text("rtne", choices=("rtne", "rtz"))

    def verify(self) -> Iterator[str]:
        yield from _same_shape("x", self.x, self.result)


class ClampF(Op[V]):
    """Clamping; `propagate_nan` selects between Triton's two ways to treat NaN."""

    OPERATION_NAME = "tpk.clampf"
    traits = Trait.DEFERRABLE | Trait.MOVABLE
    x = operand()
    low = operand()
    high = operand()
    propagate_nan = flag()

    def verify(self) -> Iterator[str]:
        for name, value in (("x", self.x), ("low", self.low), ("high", self.high)):
            yield from _same_type(name, value, self.result)


# --- moving elements -----------------------------------------------------------------------------


class Join(Op[V]):
    """Joins two tensors into one with a last dimension of 2."""

    OPERATION_NAME = "tpk.join"
    traits = Trait.DEFERRABLE
    first = operand()
    second = operand()

    def verify(self) -> Iterator[str]:
        yield from _same_type("second", self.second, self.first)
        if shape_of(self.result) != (*(shape_of(self.first) or ()), 2):
            yield "its result must have the shape of the operands, and a last dimension of 2"


class Split(Op[V]):
    """Splits a tensor with a last dimension of 2 into two."""

    OPERATION_NAME = "tpk.split"
    traits = Trait.DEFERRABLE
    result_count = 2
    x = operand(Kind.TENSOR)

    def verify(self) -> Iterator[str]:
        if (shape_of(self.x) or ())[-1:] != (2,):
            yield "the last dimension of its operand must be 2"


class Unpack(Op[V]):
    """The two 4-bit elements of each byte, the low half first, along a dimension."""

    OPERATION_NAME = "tpk.unpack"
    traits = Trait.DEFERRABLE
    x = operand(Kind.TENSOR)
    dim = integer()

    def verify(self) -> Iterator[str]:
        yield from _longer(self.x, self.result, self.dim, 2)


class Repeat(Op[V]):
    """Every element repeated several times along a dimension."""

    OPERATION_NAME = "tpk.repeat"
    traits = Trait.DEFERRABLE
    x = operand(Kind.TENSOR)
    dim = integer()
    times = integer()

    def verify(self) -> Iterator[str]:
        yield from _longer(self.x, self.result, self.dim, self.times)


class GatherAlong(Op[V]):
    """Elements selected along a dimension by index."""

    OPERATION_NAME = "tpk.gather_along"
    source = operand(Kind.TENSOR)
    indices = operand(Kind.TENSOR)
    axis = integer()

    def verify(self) -> Iterator[str]:
        yield from _along(self.axis, shape_of(self.source) or ())
        yield from _same_shape("indices", self.indices, self.result)


class Histogram(Op[V]):
    """Counts of values; those whose mask is not set are not counted."""

    OPERATION_NAME = "tpk.histogram"
    values = operand(Kind.TENSOR)
    mask = optional(Kind.BOOLEANS)

    def verify(self) -> Iterator[str]:
        yield from _same_shape("mask", self.mask, self.values)


# --- messages to the user -----------------------------------------------------------------------


class Assert(Op[V]):
    """`tl.device_assert`: the kernel fails unless every element is set."""

    OPERATION_NAME = "tpk.assert"
    traits = Trait.TELLS
    result_count = 0
    condition = operand(Kind.BOOLEANS)
    message = text("")


class Print(Op[V]):
    """`tl.device_print`; `isSigned` and `pointers` tell for each value whether it is signed, and whether it is an
    address.
    """

    OPERATION_NAME = "tpk.print"
    traits = Trait.TELLS
    result_count = 0
    values = variadic()
    prefix = text("")
    hex = flag()
    isSigned = integers()
    pointers = integers()


OPERATIONS: dict[str, type[Op[Any]]] = {cls.OPERATION_NAME: cls for cls in all_of(Op)}
"""Every operation of the dialect by name, in the order of the docs."""


# --- checks of verifiers -------------------------------------------------------------------------


def _same_shape(name: str, value: Any, other: Any) -> Iterator[str]:
    if value is not None and shape_of(value) != shape_of(other):
        yield f"`{name}` has the shape {_said(value)} instead of {_said(other)}"


def _same_type(name: str, value: Any, other: Any) -> Iterator[str]:
    yield from _same_shape(name, value, other)
    if element_of(value) != element_of(other):
        yield f"`{name}` has elements of {element_of(value)} instead of {element_of(other)}"


def _fill(other: Any, result: Any) -> Iterator[str]:
    """`other` of a load: a scalar, or a tensor of the result's shape."""
    if other is not None and element_of(other) != element_of(result):
        yield f"`other` is {element_of(other)}, but {element_of(result)} is loaded"
    if other is not None and not is_scalar(other):
        yield from _same_shape("other", other, result)


def _along(axis: int, shape: tuple[int, ...]) -> Iterator[str]:
    if not 0 <= axis < len(shape):
        yield f"a tensor of {len(shape)} dimensions has no dimension {axis}"


def _longer(source: Any, result: Any, dimension: int, times: int) -> Iterator[str]:
    shape = shape_of(source) or ()
    yield from _along(dimension, shape)
    expected = tuple(size * times if d == dimension else size for d, size in enumerate(shape))
    if shape_of(result) != expected:
        yield f"its result must have the shape {list(expected)}, not {_said(result)}"


def _said(value: Any) -> str:
    shape = shape_of(value)
    return "of a scalar" if shape is None else str(list(shape))
