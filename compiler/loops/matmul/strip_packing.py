"""Packing B into strips whose rows are shorter than a cache line.

Row after row, each store would fill a part of a line of another strip. Strips lie a multiple of 4 KiB apart, in the
same set of L1, which has replaced these lines before the next row fills the rest. So a few rows are written to a strip
before the next strip is.
"""

from __future__ import annotations

from triton_porting_kit.compiler.loops.ir import element_types as types
from triton_porting_kit.compiler.loops.ir.program import Operation
from triton_porting_kit.compiler.loops.lowering import Lowering
from triton_porting_kit.compiler.loops.matmul.factors import Strips, fill_either
from triton_porting_kit.compiler.loops.tiles.access import Load
from triton_porting_kit.compiler.loops.tiles.evaluation import Evaluation
from triton_porting_kit.compiler.loops.tiles.lane_memory import LINE
from triton_porting_kit.compiler.loops.tiles.tensors import Buffer, Point, Tensor

ROWS = 4
"""Rows that are written to a strip before the next strip: with AVX2 as fast as eight."""


def fill_right(lowering: Lowering, operation: Operation, place: Buffer, tensor: Tensor) -> None:
    """Write B of (K, N) to its `place`, in strips or not."""
    if not _is_written_in_parts(place, tensor):
        lowering.fill(operation, place, tensor)
        return
    assert isinstance(tensor, Load)
    builder, access = lowering.builder, tensor.access

    def some_rows_at_a_time() -> None:
        evaluation = Evaluation(builder, frozenset({access}), {})
        (k, n), strip = place.shape, place.strides[0]
        with builder.loop(builder.i64(0), builder.i64(k), builder.i64(ROWS)) as rows:
            with builder.loop(builder.i64(0), builder.i64(n), builder.i64(strip)) as columns:
                for row in range(ROWS):
                    at = (builder.add(rows.induction, builder.i64(row)), columns.induction)
                    point = Point(at, 1, strip)
                    place.write(builder, point, evaluation.at(tensor, point))

    fill_either(lowering, operation, place, tensor, access.plain_condition(builder), some_rows_at_a_time)


def _is_written_in_parts(place: Buffer, tensor: Tensor) -> bool:
    """Whether rows of a matrix in memory are packed into strips of a part of a cache line."""
    if not isinstance(place, Strips) or not isinstance(tensor, Load) or tensor.buffer is not None:
        return False
    k, n = tensor.shape
    strip = place.strides[0]
    contiguous = tensor.access.is_contiguous(1) and tensor.access.mask is None
    parts = strip < n and strip * types.byte_size(place.element) < LINE
    return contiguous and parts and k % ROWS == 0
