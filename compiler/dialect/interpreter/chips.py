"""The operations of chips with on-chip memory: buffers are arrays, transfers are copies, done at once.

An unplaced buffer is an array of its own. Once buffers are placed, each local memory is one array, so that a plan that
gives the same bytes to two live buffers gives wrong results here, too. Buffers start full of 0xA5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from triton_porting_kit.compiler.dialect.npu import (
    STORE,
    NpuBuffer,
    NpuDma,
    NpuIndexed,
    NpuMatrix,
    NpuRead,
    NpuWrite,
)

from .accesses import checked
from .formats import Array, dtype_of, widen
from .program import Block, Kernel, Operation, Value

if TYPE_CHECKING:
    from .machine import Run

_FRESH = 0xA5


def _array(run: Run, key: Any, size: int, name: str) -> int:
    """The address of a local array, which all programs that do not run at the same time share."""
    found = run.local.get(key)
    if found is None:
        found = run.local[key] = run.memory.add(np.full(size, _FRESH, np.uint8), name)
    return found


def buffer(run: Run, op: Operation) -> Any:
    view: NpuBuffer[Value] = op.view
    size = view.bytes * view.copies
    if view.address < 0:
        return np.int64(_array(run, op, size, f"buffer {view.holds} in {view.memory}"))
    key = f"local memory {view.memory}"
    if key not in run.local:
        _array(run, key, _planned(run.kernel, view.memory), key)
    return np.int64(run.local[key] + view.address)


def _planned(kernel: Kernel, memory: str) -> int:
    """The bytes of a memory that the kernel's plan uses."""

    def largest(block: Block) -> int:
        ends = [0]
        for op in block.operations:
            if op.name == NpuBuffer.OPERATION_NAME and op.view.memory == memory:
                ends.append(op.view.address + op.view.bytes * op.view.copies)
            ends += map(largest, op.regions)
        return max(ends)

    return max(map(largest, (kernel.body, *kernel.functions.values())))


def read(run: Run, op: Operation, *_: Any) -> Any:
    view: NpuRead[Value] = op.view
    start, size = run[view.buffer], dtype_of(op.element).itemsize
    addresses = start + np.arange(max(1, int(np.prod(op.shape, dtype=np.int64)))) * size
    found = run.memory.read(addresses, op.element).reshape(op.shape)
    return found if op.results[0].type.shape is not None else found[()]


def write(run: Run, op: Operation, *_: Any) -> None:
    view: NpuWrite[Value] = op.view
    kind = view.value.type
    values = np.asarray(run[view.value], dtype_of(kind.element)).reshape(-1)
    run.memory.write(run[view.buffer] + np.arange(values.size) * values.itemsize, values)


def _addresses(run: Run, view: NpuDma[Value], start: Any, strides: Any) -> Array:
    """The address of each element of one side."""
    shape, size = view.shape, dtype_of(view.element).itemsize
    steps = [int(run[stride]) for stride in strides] or [
        int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(len(shape))
    ]
    address = np.zeros((), np.int64)
    for d, count in enumerate(shape):
        index = np.arange(count).reshape([-1 if axis == d else 1 for axis in range(len(shape))])
        address = address + steps[d] * index
    return np.broadcast_to(run[start] + address * np.int64(size), shape)


def dma(run: Run, op: Operation, *_: Any) -> Any:
    view: NpuDma[Value] = op.view
    target = _addresses(run, view, view.target, view.target_strides)
    source = _addresses(run, view, view.source, view.source_strides)
    inside = np.ones(view.shape, bool)
    for d, (low, high) in enumerate(zip(view.low, view.high, strict=True)):
        index = np.arange(view.shape[d]).reshape([-1 if axis == d else 1 for axis in range(len(view.shape))])
        inside &= (run[low] <= index) & (index < run[high])
    moved = checked(run, op, inside, lambda: run.memory.read(source[inside].reshape(-1), view.element))
    if view.direction != STORE and not (view.keeps is not None and run[view.keeps]):
        values = np.zeros(view.shape, dtype_of(view.element))
        if view.fill is not None:
            values[...] = run[view.fill]
        values[inside] = moved
        moved, inside = values.reshape(-1), np.ones(view.shape, bool)
    checked(run, op, inside, lambda: run.memory.write(target[inside].reshape(-1), moved))
    return _token()


def _indexed(run: Run, view: NpuIndexed[Value]) -> tuple[Array, Array, Array]:
    """Of gather and scatter: the addresses in the buffer and in global memory, and which elements take part."""
    size = dtype_of(view.element).itemsize
    places = np.arange(view.count)
    kind = f"i{8 * view.offset_bytes}"
    offsets = run.memory.read(run[view.offsets] + places * view.offset_bytes, kind).astype(np.int64)
    wanted = np.ones(view.count, bool)
    if view.mask is not None:
        wanted = run.memory.read(run[view.mask] + places, "i1")
    return (
        run[view.buffer] + places * size,
        run[view.base] + offsets * (1 if view.byte_offsets else size),
        wanted,
    )


def gather(run: Run, op: Operation, *_: Any) -> Any:
    view = op.view
    local, remote, wanted = _indexed(run, view)
    values = np.zeros(view.count, dtype_of(view.element))
    if view.fill is not None:
        values[...] = run[view.fill]
    values[wanted] = checked(run, op, wanted, lambda: run.memory.read(remote[wanted], view.element))
    run.memory.write(local, values)
    return _token()


def scatter(run: Run, op: Operation, *_: Any) -> Any:
    view = op.view
    local, remote, wanted = _indexed(run, view)
    values = run.memory.read(local[wanted], view.element)
    checked(run, op, wanted, lambda: run.memory.write(remote[wanted], values))
    return _token()


def matrix(run: Run, op: Operation, *_: Any) -> Any:
    view: NpuMatrix[Value] = op.view
    m, n, k = view.m, view.n, view.k

    def addresses(start: Value, rows: int, columns: int, stride: int, element: str) -> Array:
        index = np.arange(rows)[:, None] * stride + np.arange(columns)
        return np.asarray(run[start] + index * dtype_of(element).itemsize).reshape(-1)

    def operand(start: Value, rows: int, columns: int, stride: int, element: str, turned: bool) -> Array:
        if turned:
            rows, columns = columns, rows
        found = run.memory.read(addresses(start, rows, columns, stride, element), element)
        wide = widen(found, element) if not element.startswith("i") else found.astype(view_type)
        tile = np.asarray(wide).reshape(rows, columns)
        return tile.T if turned else tile

    view_type = dtype_of(view.c_type)
    a = operand(view.a, m, k, view.a_stride, view.a_type, view.transpose_a)
    b = operand(view.b, k, n, view.b_stride, view.b_type, view.transpose_b)
    places = addresses(view.c, m, n, view.c_stride, view.c_type)
    product = np.matmul(a.astype(view_type), b.astype(view_type)).reshape(-1)
    if run[view.accumulate]:
        product = product + run.memory.read(places, view.c_type)
    run.memory.write(places, product.astype(view_type))
    return _token()


def programs(run: Run, op: Operation) -> Any:
    """The interpreter runs one program at a time."""
    (x, y, _), (i, j, k) = run.grid, run.program
    number = np.int64((k * y + j) * x + i)
    return number, number + 1


def program(run: Run, op: Operation, number: Any) -> Any:
    x, y, _ = run.grid
    return np.int32(number % x), np.int32(number // x % y), np.int32(number // (x * y))


def nothing(run: Run, op: Operation, *_: Any) -> None:
    """Commands complete at once, so there is nothing to wait for."""


def _token() -> Any:
    return np.int64(1)
