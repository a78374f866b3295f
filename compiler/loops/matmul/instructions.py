"""Instructions that multiply units of several elements along K, and the choice of one for a dot.

A tile product multiplies 16 rows of A by 16 columns of B over 16 units along K.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value, vector_type
from triton_porting_kit.compiler.loops.matmul import amx_kernels
from triton_porting_kit.compiler.loops.matmul.interleaved import Interleaved
from triton_porting_kit.compiler.loops.matmul.products import Elements, Product, VectorProduct
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking
from triton_porting_kit.compiler.target import CpuTarget


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


class WordPairs(Interleaved, VectorProduct):
    """Two elements of K at a time, with PMADDWD, which adds both products of 16-bit integers.

    Operands are sign-extended bytes. A sum of two products is at most 2 * 2**14, so it never overflows.
    """

    element = "i16"
    count = 2
    instructions: ClassVar = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}
    """By the lanes of its sums."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes

    def multiply_add(self, builder: LoopBuilder, a: Value, b: Value, c: Value) -> Value:
        operands = [_bitcast(builder, value, vector_type(self.element, 2 * c.lanes)) for value in (a, b)]
        return builder.add(c, _intrinsic(builder, self.instructions[c.lanes], c.type, operands))


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
        found += [WordPairs(target.lanes)] if target.multiplies_word_pairs else []
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
    factors = [_bitcast(builder, value, operands) for value in (a, b)]
    return _intrinsic(builder, instruction, c.type, [c, *factors])


def _bitcast(builder: LoopBuilder, value: Value, type: str) -> Value:
    return builder.pure(f"vector.bitcast {value.name} : {value.type} to {type}", type, (value,))


def _intrinsic(builder: LoopBuilder, name: str, type: str, operands: Sequence[Value]) -> Value:
    """The result of an x86-64 intrinsic."""
    names, given = (
        ", ".join(texts) for texts in zip(*((value.name, value.type) for value in operands), strict=True)
    )
    text = f'llvm.call_intrinsic "llvm.x86.{name}"({names}) : ({given}) -> {type}'
    return builder.pure(text, type, tuple(operands))
