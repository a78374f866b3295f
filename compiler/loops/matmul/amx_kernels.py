"""Dots on a CPU's tile registers (Intel AMX): bf16 operands with f32 sums, and bytes with i32 sums.

A tile register holds 16 rows of 64 bytes. TDPBF16PS and TDPBSSD multiply 16 rows of A by 16 columns of B, over 64 bytes
of K in groups of 4 bytes that are neighbours along K, and add the products to 16 x 16 sums (Intel 64 and IA-32
Architectures Software Developer's Manual, volume 1, chapter 18). A is read as it lies, in rows; B is packed by
`interleaved.Interleaved`. Denormal bf16 inputs and sums count as zero, as with VDPBF16PS.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value
from triton_porting_kit.compiler.loops.matmul.factors import Left
from triton_porting_kit.compiler.loops.matmul.register_blocking import Blocking

ROWS = 16
"""One tile register's rows of A and of the sums, columns of B and of the sums, and 4-byte units along K."""
UNIT_BYTES = 4
TILE = "!llvm.x86_amx"

Instruction: TypeAlias = Literal["tdpbf16ps", "tdpbssd"]
Load: TypeAlias = Literal["tileloadd", "tileloaddt1"]


def fits(shape: tuple[int, int, int], count: int) -> bool:
    """Whether a dot of shape (M, N, K) divides into whole tile registers. A unit has `count` elements of K."""
    m, n, k = shape
    return m % ROWS == 0 and n % ROWS == 0 and k % (ROWS * count) == 0


def blocking(m: int, n: int) -> Blocking:
    """The register block: up to two by two tiles of sums stay in registers over all of K, so each tile of A and B is
    used twice.
    """
    down, across = (2 if size % (2 * ROWS) == 0 else 1 for size in (m, n))
    return Blocking(down * ROWS, across, ROWS)


class TileBlock:
    """Loads, multiplies and stores one block of sums, as `vector_kernels.RegisterBlock` does in vector registers."""

    units = ROWS
    """Units along K in one step."""

    def __init__(
        self,
        builder: LoopBuilder,
        instruction: Instruction,
        element: str,
        block: Blocking,
        sums: str,
        pitch: int,
        *,
        streams: bool,
    ) -> None:
        self._builder = builder
        self._instruction = instruction
        self._element = element
        """The element type of A."""
        self._down, self._across = block.rows // ROWS, block.vectors
        self._sums = sums
        """The type of the sums."""
        self._pitch = pitch
        """The row pitch of B, in units."""
        self._left_load: Load = "tileloaddt1" if streams else "tileloadd"
        """A that `streams` by does not stay in L1 until the next strip of B. Its loads then leave it in L2, so that it
        does not replace the strip.
        """
        self._rows = builder.constant(ROWS, "i16")
        self._bytes = builder.constant(ROWS * UNIT_BYTES, "i16")

    def begin(self, begun: Value, c_row: Value, width: int) -> list[Value]:
        """The sums of the block: read from memory if `begun`, else zeros."""
        pitch = self._builder.i64(width)

        def load() -> list[Value]:
            stride = self._stride(pitch, self._sums)
            return [self._load(place, stride) for place in self._places(c_row, pitch)]

        return self._builder.if_else(begun, load, self._zeros)

    def multiply(self, sums: list[Value], a: Left, b_column: Value, start: Value, end: Value) -> list[Value]:
        """The sums with the products of the units from `start` to before `end`, a multiple of `units`."""
        with self._builder.loop(start, end, self._builder.i64(self.units), sums) as loop:
            loop.yields = self._step(loop.arguments, a, b_column, loop.induction)
        return loop.results

    def _step(self, values: list[Value], a: Left, b_column: Value, k: Value) -> list[Value]:
        """One step along K: adds the products to all sums."""
        builder, pitch = self._builder, a.pitch
        a_start = builder.address(a.start, [k], "i32")
        b_start = builder.address(b_column, [builder.mul(k, builder.i64(self._pitch))], "i32")
        down = builder.mul(pitch, builder.i64(ROWS))
        a_stride = self._stride(pitch, self._element)
        b_stride = builder.i64(self._pitch * UNIT_BYTES)
        left = [
            self._load(
                builder.address(a_start, [builder.mul(down, builder.i64(i))], types.storage(self._element)),
                a_stride,
                self._left_load,
            )
            for i in range(self._down)
        ]
        right = [
            self._load(builder.address(b_start, [builder.i64(j * ROWS)], "i32"), b_stride)
            for j in range(self._across)
        ]
        return [
            self._multiply_add(total, left[index // self._across], right[index % self._across])
            for index, total in enumerate(values)
        ]

    def store(self, values: list[Value], start: Value, pitch: Value) -> None:
        """Store the sums to rows with a pitch of `pitch` elements."""
        stride = self._stride(pitch, self._sums)
        for place, tile in zip(self._places(start, pitch), values, strict=True):
            self._builder.effect(
                f'llvm.call_intrinsic "llvm.x86.tilestored64.internal"({self._rows.name}, {self._bytes.name}, '
                f"{place.name}, {stride.name}, {tile.name}) : (i16, i16, !llvm.ptr, i64, {TILE}) -> ()"
            )

    def _places(self, start: Value, pitch: Value) -> list[Value]:
        """The addresses of the tiles of sums."""
        builder = self._builder
        rows = [builder.mul(pitch, builder.i64(i * ROWS)) for i in range(self._down)]
        return [
            builder.address(start, [row, builder.i64(j * ROWS)], self._sums)
            for row in rows
            for j in range(self._across)
        ]

    def _stride(self, pitch: Value, element: str) -> Value:
        """The row pitch in bytes."""
        return self._builder.mul(pitch, self._builder.i64(types.byte_size(element)))

    def _zeros(self) -> list[Value]:
        text = (
            f'llvm.call_intrinsic "llvm.x86.tilezero.internal"({self._rows.name}, {self._bytes.name}) : '
            f"(i16, i16) -> {TILE}"
        )
        return [self._tile(text) for _ in range(self._down * self._across)]

    def _load(self, place: Value, stride: Value, instruction: Load = "tileloadd") -> Value:
        return self._tile(
            f'llvm.call_intrinsic "llvm.x86.{instruction}64.internal"({self._rows.name}, {self._bytes.name}, '
            f"{place.name}, {stride.name}) : (i16, i16, !llvm.ptr, i64) -> {TILE}"
        )

    def _multiply_add(self, total: Value, left: Value, right: Value) -> Value:
        return self._tile(
            f'llvm.call_intrinsic "llvm.x86.{self._instruction}.internal"({self._rows.name}, {self._bytes.name}, '
            f"{self._bytes.name}, {total.name}, {left.name}, {right.name}) : "
            f"(i16, i16, i16, {TILE}, {TILE}, {TILE}) -> {TILE}"
        )

    def _tile(self, text: str) -> Value:
        value = self._builder.effect(text, TILE)
        assert value is not None
        return value
