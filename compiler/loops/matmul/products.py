"""Product kinds: how the operands of a dot are packed in scratch, and what one step of the inner loop computes.

Operands are packed in units, `depth` of them along K. A vector product multiplies one unit of A, broadcast to every
lane, by a vector of units of B. A tile product multiplies 16 rows of A by 16 columns of B over 16 units along K.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

from triton_porting_kit.compiler.loops.arithmetic.elementwise import TO_NEAREST, convert, round_to_bf16
from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul import amx_kernels
from triton_porting_kit.compiler.loops.matmul.exact_factors import ExactFactor
from triton_porting_kit.compiler.loops.matmul.factors import Columns, Rows, Strips, column_strip, fill_either
from triton_porting_kit.compiler.loops.matmul.gathered_columns import gathers_columns
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking, blocking
from triton_porting_kit.compiler.loops.matmul.strip_packing import fill_right
from triton_porting_kit.compiler.loops.memory.column_prefetch import prefetch_right
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.nests import specialise, transpose_into
from triton_porting_kit.compiler.loops.tiles.tensors import (
    Buffer,
    Elementwise,
    Point,
    Tensor,
    closure,
    is_operation,
)
from triton_porting_kit.compiler.loops.tiles.tile_loops import tile_loop
from triton_porting_kit.compiler.loops.tiles.transposed import (
    in_squares,
    lies_across,
    lies_in_columns,
    rows_of_unit,
    transpose_squares,
    transpose_tile,
    turned,
    unit_of,
)
from triton_porting_kit.compiler.target import CpuTarget

GATHERED = 8
"""Lanes to pack at a time when LLVM would load them one by one: more are no faster and take much code."""


class Product(ABC):
    """A kind of product. `unit` is the type of packed operands; it holds `count` values of type `element` along K."""

    unit: str
    element: str
    count = 1
    flushes = False
    """Whether denormal sums become zero."""
    excess: int | None = None
    """The bias that `biased` adds to A's units. Each sum is then too large by its product with B. None: no bias."""

    def biased(self, builder: LoopBuilder, a: Value) -> Value:
        """Units of A with the bias added, if any."""
        return a

    @abstractmethod
    def left(self, tensor: Tensor) -> Tensor:
        """A in the type that it is packed in."""

    def fill_left(self, lowering: Lowering, operation: Operation, place: Buffer, tensor: Tensor) -> None:
        """Write A, in that type, to `place` row by row."""
        lowering.fill(operation, place, tensor)

    def packs_columns(self, tensor: Tensor) -> bool:
        """Whether A, in that type, is packed column by column, as it lies: its units are read one by one anyway."""
        return False

    def left_pitch(self, depth: int) -> int:
        """The row pitch of a packed A in units, for rows of `depth` units."""
        return depth

    @abstractmethod
    def pack_left(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        """Pack A (..., M, K) in scratch as (..., M, depth) units."""

    @abstractmethod
    def pack_right(
        self, lowering: Lowering, operation: Operation, tensor: Tensor, place: Buffer | None = None
    ) -> Buffer:
        """Pack B (..., K, N) in scratch as (..., depth, N) units, row-major unless a `place` is given."""

    def block(self, target: CpuTarget, m: int, n: int, work: str, *, several: bool = False) -> Blocking:
        """The block of the (`m`, `n`) sums of type `work` that stays in registers. `several`: see `blocking`."""
        return blocking(target, m, n, work, several=several)


class VectorProduct(Product):
    """One unit of A by a vector of units of B."""

    @abstractmethod
    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        """c + a * b for units `a` and `b`, lane by lane."""


class Elements(VectorProduct):
    """One element of K at a time, in the accumulator's type."""

    def __init__(self, element: str) -> None:
        self.unit = self.element = element

    def left(self, tensor: Tensor) -> Tensor:
        return converted(tensor.buffer or tensor, self.unit)

    def packs_columns(self, tensor: Tensor) -> bool:
        return not isinstance(tensor, Buffer) and lies_in_columns(tensor)

    def pack_left(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        tensor = self.left(tensor)
        if not self.packs_columns(tensor):
            return tensor if isinstance(tensor, Rows) else lowering.materialise(tensor, operation)
        *batch, m, k = tensor.shape
        place = lowering.scratch.allocate((*batch, k, m), self.unit)
        strip = m if batch else column_strip(m)
        if not batch:
            place = Strips((k, m), self.unit, place.pointer, strip, k)
        lowering.fill(operation, place, turned(tensor))
        return Columns(tensor.shape, self.unit, place.pointer, strip)

    def pack_right(
        self, lowering: Lowering, operation: Operation, tensor: Tensor, place: Buffer | None = None
    ) -> Buffer:
        tensor = converted(tensor.buffer or tensor, self.unit)
        in_columns = gathers_columns(lowering, operation, tensor)
        prefetch_right(lowering, operation, tensor)
        if in_columns:
            place = place or lowering.scratch.allocate(tensor.shape, self.unit)
            transpose_into(lowering.builder, lowering.target, tensor, place)
            return place
        if place is None:
            return lowering.materialise(tensor, operation)
        fill_right(lowering, operation, place, tensor)
        return place

    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        if types.is_float(self.unit):
            return builder.pure(f"math.fma {a.name}, {b.name}, {c.name} : {c.type}", c.type, (a, b, c))
        return builder.add(c, builder.mul(a, b))


class Interleaved(Product):
    """`count` elements of K in one 32-bit unit.

    A unit holds neighbours along K, the first one in the lowest bits. Sums have 32 bits, too.
    """

    unit = "i32"
    lanes = 16
    rounds = False
    """Whether an instruction rounds f32 to `element`, which takes denormals as zero, as the product does."""

    def left(self, tensor: Tensor) -> Tensor:
        return self._factor(tensor)

    def _factor(self, tensor: Tensor) -> Tensor:
        """A factor in the type that it is packed in."""
        held = tensor.buffer or tensor
        if self.rounds and held.element == "f32":  # exact: see `scaled_factors`
            return Elementwise(held.shape, self.element, [held], round_to_bf16)
        if self.rounds and _rounds_to_nearest(held) and held.operands[0].element == "f32":
            return Elementwise(held.shape, held.element, held.operands, round_to_bf16)
        return converted(held, self.element)

    def pack_left(self, lowering: Lowering, operation: Operation, tensor: Tensor) -> Buffer:
        tensor = self.left(tensor)
        if isinstance(tensor, Rows):  # another product has packed it
            return tensor.in_units(self.unit, self.count)
        if in_squares(tensor, lowering.target, self.count):
            buffer = lowering.scratch.allocate(tensor.shape, tensor.element)
            self.fill_left(lowering, operation, buffer, tensor)
        else:
            buffer = lowering.materialise(tensor, operation)
        *outer, k = buffer.shape
        return Buffer((*outer, k // self.count), self.unit, buffer.pointer)

    def fill_left(self, lowering: Lowering, operation: Operation, place: Buffer, tensor: Tensor) -> None:
        builder = lowering.builder
        if not in_squares(tensor, lowering.target, self.count):
            lowering.fill(operation, place, tensor)
            return
        loads = [part.access for part in closure([tensor]) if isinstance(part, Load)]
        plain = builder.constant(1, "i1")
        for access in loads:
            plain = builder.logical_and(plain, access.plain_condition(builder))

        def transposed() -> None:
            evaluation = Evaluation(builder, frozenset(loads), {})
            transpose_squares(evaluation, tensor, lowering.target, place, self.count)

        fill_either(lowering, operation, place, tensor, plain, transposed)

    def pack_right(
        self, lowering: Lowering, operation: Operation, tensor: Tensor, place: Buffer | None = None
    ) -> Buffer:
        builder = lowering.builder
        exact = ExactFactor.of(tensor.buffer or tensor) if self.element == "bf16" else None
        tensor = self._factor(tensor)
        *batch, k, n = tensor.shape
        packed = place or lowering.scratch.allocate((*batch, k // self.count, n), self.unit)
        columns = self._read_in_columns(lowering, operation, tensor, exact)
        prefetch_right(lowering, operation, tensor)
        kept = {} if columns is not None else lowering.plan(operation, tensor.shape, [tensor])
        if tensor in kept:
            exact = None  # later uses read it as bf16, so it is evaluated and kept as that

        def emit(unmasked: frozenset[object]) -> list[Value]:
            evaluation = Evaluation(builder, unmasked, kept)
            if columns is None:
                lanes = GATHERED if _gathers(tensor, unmasked) else self.lanes * self.count
                lanes = min(lanes, packed.strides[-2])  # at most one strip, if there are strips
                self._pack_rows(evaluation, tensor, exact, packed, lanes)
            elif columns is tensor or exact is None:
                write = partial(packed.write, builder)
                transpose_tile(evaluation, tensor, lowering.target, write, unit=self.unit, count=self.count)
            else:
                exact.pack_columns(evaluation, lowering.target, packed)
            return []

        specialise(lowering.builder, [tensor], emit)
        for kept_part, buffer in kept.items():
            lowering.hold(kept_part, buffer)
        return packed

    def _pack_rows(
        self, evaluation: Evaluation, tensor: Tensor, exact: ExactFactor | None, packed: Buffer, lanes: int
    ) -> None:
        """Emit loops that pack B as it lies in rows, up to so many `lanes` at a time."""
        if exact is not None:
            exact.pack_rows(evaluation, packed, min(lanes, self.lanes))
            return

        def body(point: Point) -> None:
            rows = rows_of_unit(evaluation, tensor, point, self.count)
            packed.write(evaluation.builder, point, unit_of(evaluation.builder, rows))

        tile_loop(evaluation.builder, packed.shape, lanes, body)

    def _read_in_columns(
        self, lowering: Lowering, operation: Operation, tensor: Tensor, exact: ExactFactor | None
    ) -> Tensor | None:
        """What to read in transposed blocks: the bytes of B or `tensor`, which is B as it is packed; None: neither."""
        found = [tensor] if exact is None or exact.bytes is None else [exact.bytes, tensor]
        for read in found:
            if lies_across(read, lowering.target) or gathers_columns(lowering, operation, read):
                return read
        return None


class Bfloat16Pairs(Interleaved, VectorProduct):
    """Two elements of K at a time, with AVX512-BF16's VDPBF16PS, which takes denormal inputs as zero."""

    element = "bf16"
    count = 2
    elements = ("bf16", *types.FLOAT8)
    """The types whose values bf16 represents exactly."""
    rounds = True
    flushes = True

    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        return _sum_of_products(builder, "avx512bf16.dpbf16ps.512", vector_type("bf16", 2 * c.lanes), a, b, c)


class ByteQuads(Interleaved, VectorProduct):
    """Four elements of K at a time, with AVX512-VNNI's VPDPBUSD.

    Its left operand is unsigned, so A is biased by 128.
    """

    element = "i8"
    count = 4
    excess = 0x80808080

    def biased(self, builder: LoopBuilder, a: Value) -> Value:
        return builder.binary("arith.xori", a, builder.constant(self.excess, a.type))

    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        return _sum_of_products(builder, "avx512.vpdpbusd.512", vector_type("i8", 4 * c.lanes), a, b, c)


class TileProduct(Interleaved):
    """Units in tile registers: see `amx_kernels`."""

    instruction: amx_kernels.Instruction

    def left_pitch(self, depth: int) -> int:
        """An odd number of cache lines: all rows of a tile are read at once, which are then in different sets."""
        return depth + amx_kernels.ROWS if depth % (2 * amx_kernels.ROWS) == 0 else depth

    def block(self, target: CpuTarget, m: int, n: int, work: str, *, several: bool = False) -> Blocking:
        """Up to two by two tile registers."""
        return amx_kernels.blocking(m, n)


class Bfloat16Tiles(TileProduct):
    """AMX's TDPBF16PS, which takes denormal inputs and sums as zero."""

    element = "bf16"
    count = 2
    flushes = True
    instruction = "tdpbf16ps"

    def __init__(self, *, rounds: bool) -> None:
        self.rounds = rounds


class ByteTiles(TileProduct):
    """AMX's TDPBSSD, of signed bytes."""

    element = "i8"
    count = 4
    instruction = "tdpbssd"


def _gathers(tensor: Tensor, unmasked: frozenset[object]) -> bool:
    """Whether neighbours along the last dimension are loaded from addresses that are not contiguous."""
    last = len(tensor.shape) - 1
    return any(
        not part.access.is_contiguous(last) or (last in part.access.wraps and part.access not in unmasked)
        for part in closure([tensor])
        if isinstance(part, Load) and len(part.shape) > last
    )


def product_for(target: CpuTarget, left: str, right: str, shape: tuple[int, int, int], work: str) -> Product:
    """The product kind for M by K elements `left` and K by N `right` with sums in `work`; `shape` is (M, N, K)."""
    elements, (_, n, k) = {left, right}, shape
    found: list[Interleaved] = []
    if work == "f32" and elements <= {*Bfloat16Pairs.elements}:
        found += [Bfloat16Tiles(rounds=target.rounds_to_bf16)] if target.multiplies_bf16_tiles else []
        found += [Bfloat16Pairs()] if target.multiplies_bf16_pairs else []
    elif work == "i32" and elements == {ByteQuads.element}:
        found += [ByteTiles()] if target.multiplies_byte_tiles else []
        found += [ByteQuads()] if target.multiplies_byte_quads else []
    for product in found:
        if isinstance(product, TileProduct):
            fits = amx_kernels.fits(shape, product.count)
        else:
            fits = k % product.count == 0 and n % product.lanes == 0
        if fits:
            return product
    return Elements(work)


def _sum_of_products(
    builder: LoopBuilder, instruction: str, operands: str, a: Value, b: Value, c: Value
) -> Value:
    """c + a * b by an x86-64 instruction that takes the units of `a` and `b` as vectors of type `operands`."""
    left, right = (
        builder.pure(f"vector.bitcast {value.name} : {value.type} to {operands}", operands, (value,))
        for value in (a, b)
    )
    text = (
        f'llvm.call_intrinsic "llvm.x86.{instruction}"({c.name}, {left.name}, {right.name}) : '
        f"({c.type}, {operands}, {operands}) -> {c.type}"
    )
    return builder.pure(text, c.type, (c, left, right))


def _rounds_to_nearest(tensor: Tensor) -> bool:
    """Whether a tensor is another one in a narrower type, rounded to the nearest number."""
    owner = None if tensor.definition is None else tensor.definition.owner
    toward_zero = owner is not None and owner.integer("roundingmode", TO_NEAREST) != TO_NEAREST
    return is_operation(tensor, "arith.truncf") and not toward_zero


def converted(tensor: Tensor, element: str) -> Tensor:
    """`tensor` converted to another element type."""
    if tensor.element == element:
        return tensor
    wider = types.BITS[element] > types.BITS[tensor.element]
    if types.is_float(element):
        name = "arith.extf" if wider else "arith.truncf"
    else:
        name = "arith.extsi" if wider else "arith.trunci"

    def emit(builder: LoopBuilder, values: list[Value]) -> Value:
        return convert(builder, name, values[0], tensor.element, element)

    return Elementwise(tensor.shape, element, [tensor], emit)
