"""The operations of the dialect ``tpk``: those of Triton's that upstream's dialects do not have."""

from __future__ import annotations

from collections.abc import Iterator

from .checks import along, fill, longer, same_shape, same_type
from .schema import Kind, Op, Trait, V, flag, integer, integers, operand, optional, text, variadic
from .types import element_of, shape_of

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
        yield from same_shape("mask", self.mask, self.tile)


class Load(StructuredAccess[V]):
    """A tile, or a scalar, from memory."""

    OPERATION_NAME = "tpk.load"
    traits = Trait.READS | Trait.DEFERRABLE
    other = optional()

    def verify(self) -> Iterator[str]:
        yield from super().verify()
        yield from fill(self.other, self.result)


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
        yield from same_shape("offsets", self.offsets, self.result)
        yield from same_shape("mask", self.mask, self.result)
        yield from fill(self.other, self.result)


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
        yield from same_shape("offsets", self.offsets, self.value)
        yield from same_shape("mask", self.mask, self.value)


class Atomic(Op[V]):
    """The base of the atomic operations."""

    traits = Trait.READS | Trait.WRITES
    base = operand(Kind.POINTER)
    offsets = operand(Kind.INTEGERS)
    byte_offsets = flag()
    sem = text("acq_rel", choices=SEMANTICS)
    scope = text("gpu", choices=SCOPES)

    def verify(self) -> Iterator[str]:
        yield from same_shape("offsets", self.offsets, self.result)


class AtomicRmw(Atomic[V]):
    """Atomic read-modify-write; gives the old values, and 0 where the mask is not set."""

    OPERATION_NAME = "tpk.atomic_rmw"
    segmented = True
    value = operand()
    mask = optional(Kind.BOOLEANS)
    kind = text(choices=("add", "fadd", "max", "umax", "min", "umin", "and", "or", "xor", "exch"))

    def verify(self) -> Iterator[str]:
        yield from super().verify()
        yield from same_type("value", self.value, self.result)
        yield from same_shape("mask", self.mask, self.result)


class AtomicCas(Atomic[V]):
    """Atomic compare-and-swap, which compares bits; gives the old values."""

    OPERATION_NAME = "tpk.atomic_cas"
    compare = operand()
    value = operand()

    def verify(self) -> Iterator[str]:
        yield from super().verify()
        yield from same_type("compare", self.compare, self.result)
        yield from same_type("value", self.value, self.result)


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
        yield from along(self.axis, shape)
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
        yield from along(self.axis, shape_of(self.inputs[0]) or ())
        if len(self.results) != len(self.inputs):
            yield f"{len(self.inputs)} inputs and {len(self.results)} results"
        for value, result in zip(self.inputs, self.results, strict=False):
            yield from same_shape("results", result, value)


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
        yield from same_shape("x", self.x, self.result)


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
            yield from same_type(name, value, self.result)


# --- moving elements -----------------------------------------------------------------------------


class Join(Op[V]):
    """Joins two tensors into one with a last dimension of 2."""

    OPERATION_NAME = "tpk.join"
    traits = Trait.DEFERRABLE
    first = operand()
    second = operand()

    def verify(self) -> Iterator[str]:
        yield from same_type("second", self.second, self.first)
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
        yield from longer(self.x, self.result, self.dim, 2)


class Repeat(Op[V]):
    """Every element repeated several times along a dimension."""

    OPERATION_NAME = "tpk.repeat"
    traits = Trait.DEFERRABLE
    x = operand(Kind.TENSOR)
    dim = integer()
    times = integer()

    def verify(self) -> Iterator[str]:
        yield from longer(self.x, self.result, self.dim, self.times)


class GatherAlong(Op[V]):
    """Elements selected along a dimension by index."""

    OPERATION_NAME = "tpk.gather_along"
    source = operand(Kind.TENSOR)
    indices = operand(Kind.TENSOR)
    axis = integer()

    def verify(self) -> Iterator[str]:
        yield from along(self.axis, shape_of(self.source) or ())
        yield from same_shape("indices", self.indices, self.result)


class Histogram(Op[V]):
    """Counts of values; those whose mask is not set are not counted."""

    OPERATION_NAME = "tpk.histogram"
    values = operand(Kind.TENSOR)
    mask = optional(Kind.BOOLEANS)

    def verify(self) -> Iterator[str]:
        yield from same_shape("mask", self.mask, self.values)


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
