"""Dots on a CPU's matrix registers: Intel AMX, for bf16 operands and f32 accumulators.

A tile register holds 16 rows of 64 bytes. TDPBF16PS multiplies 16 rows of A (32 values of K each) by 32 values of K
of B for 16 columns, in pairs of neighbours along K, and adds to 16 x 16 sums (Intel 64 and IA-32 Architectures
Software Developer's Manual, volume 1, chapter 18). A is read as it lies, row after row; B as
`products.Bfloat16Pairs` packs it. Denormal inputs and sums count as zero, as with VDPBF16PS.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.compiler.loops.builder import LoopBuilder, Value
from triton_porting_kit.compiler.loops.tensors import Buffer
from triton_porting_kit.compiler.target import CpuTarget

ROWS = 16
"""Rows of A and of the sums, and columns of B and of the sums, in one tile register."""
ROW_BYTES = 64
STEP = 32
"""Values of K in one tile register."""
TILE = "!llvm.x86_amx"


def fits(target: CpuTarget, m: int, n: int, k: int) -> bool:
    """Whether a dot of that shape is made of whole tile registers on this CPU."""
    return target.multiplies_bf16_tiles and m % ROWS == 0 and n % ROWS == 0 and k % STEP == 0


def multiply(builder: LoopBuilder, a: Buffer, b: Buffer, c: Buffer, batch: Sequence[Value]) -> None:
    """c += a * b: `a` is (..., M, K / 2) and `b` (..., K / 2, N) pairs of bf16, `c` (..., M, N) in f32.

    Up to two by two tiles of sums stay in registers over all of K, so that each tile of A and B serves twice.
    """
    *_, m, pairs = a.shape
    n = b.shape[-1]
    down, across = (2 if size % (2 * ROWS) == 0 else 1 for size in (m, n))
    zero = builder.i64(0)
    a_start, b_start, c_start = (
        builder.address(
            buffer.pointer, [builder.mul(i, builder.i64(buffer.strides[0])) for i in batch], buffer.element
        )
        for buffer in (a, b, c)
    )
    tiles = _Tiles(builder)
    with builder.loop(zero, builder.i64(n), builder.i64(across * ROWS)) as columns:
        with builder.loop(zero, builder.i64(m), builder.i64(down * ROWS)) as rows:
            corner = [columns.induction, builder.mul(rows.induction, builder.i64(n))]
            c_block = builder.address(c_start, corner, c.element)
            a_block = builder.address(a_start, [builder.mul(rows.induction, builder.i64(pairs))], a.element)
            b_block = builder.address(b_start, [columns.induction], b.element)
            places = [
                builder.address(c_block, [builder.i64((i * n + j) * ROWS)], c.element)
                for i in range(down)
                for j in range(across)
            ]
            sums = [tiles.load(place, n) for place in places]
            with builder.loop(zero, builder.i64(pairs), builder.i64(STEP // 2), sums) as loop:
                a_step = builder.address(a_block, [loop.induction], a.element)
                b_step = builder.address(b_block, [builder.mul(loop.induction, builder.i64(n))], b.element)
                left = [
                    tiles.load(builder.address(a_step, [builder.i64(i * ROWS * pairs)], a.element), pairs)
                    for i in range(down)
                ]
                right = [
                    tiles.load(builder.address(b_step, [builder.i64(j * ROWS)], b.element), n)
                    for j in range(across)
                ]
                loop.yields = [
                    tiles.multiply_add(total, left[index // across], right[index % across])
                    for index, total in enumerate(loop.arguments)
                ]
            for place, total in zip(places, loop.results, strict=True):
                tiles.store(place, n, total)


class _Tiles:
    """Instructions on full tile registers. Strides are in 32-bit words."""

    def __init__(self, builder: LoopBuilder) -> None:
        self._builder = builder
        self._rows = builder.constant(ROWS, "i16")
        self._bytes = builder.constant(ROW_BYTES, "i16")

    def load(self, place: Value, stride: int) -> Value:
        step = self._builder.i64(4 * stride)
        loaded = self._builder.effect(
            f'llvm.call_intrinsic "llvm.x86.tileloadd64.internal"({self._rows.name}, {self._bytes.name}, '
            f"{place.name}, {step.name}) : (i16, i16, !llvm.ptr, i64) -> {TILE}",
            TILE,
        )
        assert loaded is not None
        return loaded

    def store(self, place: Value, stride: int, tile: Value) -> None:
        step = self._builder.i64(4 * stride)
        self._builder.effect(
            f'llvm.call_intrinsic "llvm.x86.tilestored64.internal"({self._rows.name}, {self._bytes.name}, '
            f"{place.name}, {step.name}, {tile.name}) : (i16, i16, !llvm.ptr, i64, {TILE}) -> ()"
        )

    def multiply_add(self, total: Value, left: Value, right: Value) -> Value:
        result = self._builder.effect(
            f'llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"({self._rows.name}, {self._bytes.name}, '
            f"{self._bytes.name}, {total.name}, {left.name}, {right.name}) : "
            f"(i16, i16, i16, {TILE}, {TILE}, {TILE}) -> {TILE}",
            TILE,
        )
        assert result is not None
        return result
