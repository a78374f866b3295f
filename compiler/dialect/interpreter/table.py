"""The interpreter's dispatch table: `HANDLERS` has the function that executes each operation of the structured form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from triton_porting_kit.compiler.dialect import npu, operations
from triton_porting_kit.compiler.dialect.schema import Op

from . import accesses, chips, elementwise, functions, tiles
from .formats import dtype_of
from .program import Operation

if TYPE_CHECKING:
    from .machine import Run

Handler = Callable[..., Any]
"""``handler(run, operation, *operands)`` -> the value of the result, or a tuple of the values of all results."""


def _of_elements(function: Callable[..., Any]) -> Handler:
    return lambda run, op, *values: function(op, *values)


def _program_id(run: Run, op: Operation) -> Any:
    return np.int32(run.program[op.view.axis])


def _num_programs(run: Run, op: Operation) -> Any:
    return np.int32(run.grid[op.view.axis])


def _null(run: Run, op: Operation) -> Any:
    return np.int64(0)


def _address(run: Run, op: Operation, value: Any) -> Any:
    return np.int64(value)


def _element_pointer(run: Run, op: Operation, base: Any, *index: Any) -> Any:
    (offset,) = index or op.integers("rawConstantIndices")
    size = dtype_of(str(op.attributes["elem_type"].value)).itemsize
    return np.int64(base) + np.int64(offset) * np.int64(size)


def _end(run: Run, op: Operation, *values: Any) -> Any:
    """The caller that executes a block reads the operands of its terminator."""
    return values


_UPSTREAM: dict[str, Handler] = {
    **{name: _of_elements(function) for name, function in elementwise.FUNCTIONS.items()},
    "arith.constant": tiles.constant,
    "llvm.mlir.zero": _null,
    "llvm.inttoptr": _address,
    "llvm.ptrtoint": _address,
    "llvm.getelementptr": _element_pointer,
    "tensor.splat": tiles.splat,
    "tensor.empty": tiles.zeros,
    "tensor.expand_shape": tiles.reshape,
    "tensor.collapse_shape": tiles.reshape,
    "tensor.extract": tiles.extract,
    "tensor.concat": tiles.concat,
    "linalg.broadcast": tiles.broadcast,
    "linalg.transpose": tiles.transpose,
    "linalg.matmul": tiles.matmul,
    "linalg.batch_matmul": tiles.matmul,
    "ub.poison": tiles.zeros,
    "scf.for": tiles.for_loop,
    "scf.if": tiles.branch,
    "scf.while": tiles.while_loop,
    "func.call": tiles.call,
    **dict.fromkeys(("scf.yield", "scf.condition", "func.return"), _end),
}

_DIALECT: dict[type[Op[Any]], Handler] = {
    operations.ProgramId: _program_id,
    operations.NumPrograms: _num_programs,
    operations.Range: tiles.count,
    operations.Load: accesses.load,
    operations.Store: accesses.store,
    operations.Gather: accesses.gather,
    operations.Scatter: accesses.scatter,
    operations.AtomicRmw: accesses.atomic_rmw,
    operations.AtomicCas: accesses.atomic_cas,
    operations.AtomicPoll: accesses.atomic_poll,
    operations.Reduce: tiles.reduce,
    operations.Scan: tiles.scan,
    operations.Map: tiles.map_elements,
    operations.Yield: _end,
    operations.Call: tiles.call,
    operations.Function: _of_elements(functions.compute),
    operations.FpToFp: tiles.fp_to_fp,
    operations.ClampF: tiles.clampf,
    operations.Join: tiles.join,
    operations.Split: tiles.split,
    operations.Unpack: tiles.unpack,
    operations.Repeat: tiles.repeat,
    operations.GatherAlong: tiles.gather_along,
    operations.Histogram: tiles.histogram,
    operations.Assert: tiles.check,
    operations.Print: tiles.show,
    npu.NpuBuffer: chips.buffer,
    npu.NpuRead: chips.read,
    npu.NpuWrite: chips.write,
    npu.NpuDma: chips.dma,
    npu.NpuGather: chips.gather,
    npu.NpuScatter: chips.scatter,
    npu.NpuMatrix: chips.matrix,
    npu.NpuPrograms: chips.programs,
    npu.NpuProgram: chips.program,
    **dict.fromkeys((npu.NpuWait, npu.NpuOrder, npu.NpuAnnounce), chips.nothing),
    npu.NpuElementLoad: accesses.gather,
    npu.NpuElementStore: accesses.scatter,
    npu.NpuAtomicRmw: accesses.atomic_rmw,
    npu.NpuAtomicCas: accesses.atomic_cas,
    npu.NpuAtomicPoll: accesses.atomic_poll,
}

HANDLERS: dict[str, Handler] = _UPSTREAM | {cls.OPERATION_NAME: found for cls, found in _DIALECT.items()}
"""By operation name."""

STRAIGHT = frozenset(
    [
        *elementwise.FUNCTIONS, "arith.constant", "ub.poison",
        *(cls.OPERATION_NAME for cls in (operations.Function, operations.FpToFp, operations.ClampF)),
    ]
)  # fmt: skip
"""Operations that accept arrays although their types are scalars."""
