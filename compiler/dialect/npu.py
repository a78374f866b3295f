"""The operations that drive a chip with on-chip memory, in the stage ``tiles`` and behind (docs/npu-compiler.md).

Global memory is only touched by these operations. A buffer is the address of a piece of a local memory; its elements
are contiguous and row-major. The transfers and the matrix unit's commands run beside the core: each gives a token, the
number of the command on its unit, which `tpk.npu_wait` and `tpk.npu_order` take.
"""

from __future__ import annotations

from collections.abc import Iterator

from .operations import AtomicCas, AtomicPoll, AtomicRmw, Gather, Scatter
from .schema import Kind, Op, Trait, V, flag, integer, integers, operand, optional, text, variadic

LOAD, STORE, MOVE = "load", "store", "move"
"""Directions of a transfer: from global memory, to it, or between two local memories."""

MOST_DIMENSIONS = 5
"""Dimensions of a transfer's descriptor."""


class NpuBuffer(Op[V]):
    """The address of a buffer in a local memory. `address` counts from the start of the memory, once it is placed;
    `copies` buffers of `bytes` lie behind each other.
    """

    OPERATION_NAME = "tpk.npu_buffer"
    memory = text()
    bytes = integer()
    copies = integer(1)
    address = integer(-1)
    holds = text("")

    def verify(self) -> Iterator[str]:
        if self.bytes < 1 or self.copies < 1:
            yield f"{self.copies} copies of {self.bytes} bytes: both must be positive"


class NpuRead(Op[V]):
    """The elements of a buffer as a tensor, which vector code reads where it computes with them."""

    OPERATION_NAME = "tpk.npu_read"
    traits = Trait.READS | Trait.DEFERRABLE
    buffer = operand(Kind.POINTER)


class NpuWrite(Op[V]):
    """Vector code computes a tensor, or a scalar, into a buffer."""

    OPERATION_NAME = "tpk.npu_write"
    traits = Trait.WRITES
    result_count = 0
    buffer = operand(Kind.POINTER)
    value = operand()


class NpuDma(Op[V]):
    """Starts a transfer of a tile and gives its token. Strides count elements; without them, a side is contiguous. Only
    elements within the bounds are transferred; a load gives the others `fill`, or 0, but if `keeps` is there and not 0,
    they stay as they are.
    """

    OPERATION_NAME = "tpk.npu_dma"
    traits = Trait.READS | Trait.WRITES
    segmented = True
    target = operand(Kind.POINTER)
    source = operand(Kind.POINTER)
    target_strides = variadic(Kind.I64)
    source_strides = variadic(Kind.I64)
    low = variadic(Kind.I64)
    high = variadic(Kind.I64)
    fill = optional()
    keeps = optional(Kind.I64)
    unit = text()
    direction = text(choices=(LOAD, STORE, MOVE))
    shape = integers()
    element = text()

    def verify(self) -> Iterator[str]:
        rank = len(self.shape)
        if rank > MOST_DIMENSIONS:
            yield f"a transfer has at most {MOST_DIMENSIONS} dimensions, not {rank}"
        for name in ("target_strides", "source_strides", "low", "high"):
            if len(getattr(self, name)) not in (0, rank):
                yield f"{len(getattr(self, name))} operands `{name}` for a tile of {rank} dimensions"
        if len(self.low) != len(self.high):
            yield "it has only one of `low` and `high`: bounds need both"


class NpuIndexed(Op[V]):
    """The base of `NpuGather` and `NpuScatter`."""

    traits = Trait.READS | Trait.WRITES
    segmented = True
    buffer = operand(Kind.POINTER)
    base = operand(Kind.POINTER)
    offsets = operand(Kind.POINTER)
    mask = optional(Kind.POINTER)
    unit = text()
    count = integer()
    element = text()
    offset_bytes = integer()
    byte_offsets = flag()


class NpuGather(NpuIndexed[V]):
    """Starts a transfer of elements at explicit offsets into a buffer. Offsets, and a mask of bytes, are in buffers;
    elements whose mask is not set get `fill`, or 0.
    """

    OPERATION_NAME = "tpk.npu_gather"
    fill = optional()


class NpuScatter(NpuIndexed[V]):
    """Starts a transfer of a buffer's elements to explicit offsets; the others stay as they are."""

    OPERATION_NAME = "tpk.npu_scatter"


class NpuMatrix(Op[V]):
    """C = A · B, or C += A · B, on buffers, by the matrix unit. Row strides count elements. `transpose_a`: A lies in
    memory as k rows of m, `transpose_b`: B as n rows of k.
    """

    OPERATION_NAME = "tpk.npu_matrix"
    traits = Trait.READS | Trait.WRITES
    c = operand(Kind.POINTER)
    a = operand(Kind.POINTER)
    b = operand(Kind.POINTER)
    accumulate = operand(Kind.BOOLEANS)
    m = integer()
    n = integer()
    k = integer()
    c_stride = integer()
    a_stride = integer()
    b_stride = integer()
    a_type = text()
    b_type = text()
    c_type = text()
    transpose_a = flag()
    transpose_b = flag()


class NpuWait(Op[V]):
    """The core waits for a command of a unit, and all before it."""

    OPERATION_NAME = "tpk.npu_wait"
    traits = Trait.WRITES
    result_count = 0
    token = operand(Kind.I64)
    unit = text()


class NpuOrder(Op[V]):
    """Later commands of a unit start only behind a command of another one; the core goes on."""

    OPERATION_NAME = "tpk.npu_order"
    traits = Trait.WRITES
    result_count = 0
    token = operand(Kind.I64)
    unit = text()
    other = text()


class NpuAnnounce(Op[V]):
    """Tells the chip that vector code reads, or writes, this buffer here."""

    OPERATION_NAME = "tpk.npu_announce"
    traits = Trait.WRITES
    result_count = 0
    buffer = operand(Kind.POINTER)
    bytes = integer()
    writes = flag()


class NpuPrograms(Op[V]):
    """The first program that the core is to run, and the one behind the last, as i64."""

    OPERATION_NAME = "tpk.npu_programs"
    traits = Trait.POSITION
    result_count = 2


class NpuProgram(Op[V]):
    """The position of a program in the grid along each axis, as i32. `current`: that program runs from here on."""

    OPERATION_NAME = "tpk.npu_program"
    traits = Trait.POSITION
    result_count = 3
    program = operand(Kind.I64)
    current = flag()


# --- the element path: the core accesses global memory itself, one element after the other ------------


class NpuElementLoad(Gather[V]):
    """The core loads single elements at explicit offsets."""

    OPERATION_NAME = "tpk.npu_element_load"
    traits = Trait.READS


class NpuElementStore(Scatter[V]):
    """The core stores single elements to explicit offsets."""

    OPERATION_NAME = "tpk.npu_element_store"


class NpuAtomicRmw(AtomicRmw[V]):
    """`tpk.atomic_rmw` by the element path."""

    OPERATION_NAME = "tpk.npu_atomic_rmw"


class NpuAtomicCas(AtomicCas[V]):
    """`tpk.atomic_cas` by the element path."""

    OPERATION_NAME = "tpk.npu_atomic_cas"


class NpuAtomicPoll(AtomicPoll[V]):
    """`tpk.atomic_poll` by the element path."""

    OPERATION_NAME = "tpk.npu_atomic_poll"
