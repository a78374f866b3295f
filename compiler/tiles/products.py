"""Raises products to the matrix unit, as far as the chip multiplies their types and their tiles fit its memories.

An operand that is loaded for the product alone goes from global memory straight to the operand's own memory; others
are computed into the vector memory and moved from there. The sums of a product that a loop carries stay in the memory
of sums (`residents`). An operand that lies in memory across the multiplication's direction is moved as it lies, and the
unit transposes it.

What is left to vector code: types that the unit does not have, and tiles whose sums are larger than their memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from triton_porting_kit.abi.elements import OF_MLIR
from triton_porting_kit.chips.description import ChipDescription, MatrixUnit
from triton_porting_kit.compiler.dialect.npu import NpuMatrix
from triton_porting_kit.compiler.dialect.operations import Load
from triton_porting_kit.compiler.structured.affine import Shape
from triton_porting_kit.toolchain.mlir import ir

from .editing import Editor, byte_size, element_of, functions, nested, shape_of
from .fetching import carried, fetched, filling, mover
from .residents import Resident, is_zero, read_apart, residents

MATRIX = "matrix"
"""The name of the matrix unit among a core's units."""

PRODUCTS = ("linalg.matmul", "linalg.batch_matmul")
LONG = 4
"""An operand is moved by halves if the bytes take so many times as long as the start of a transfer."""
MOST_BATCHES = 16
"""More batches than this are left to vector code: each takes commands of its own."""


@dataclass(frozen=True)
class Extent:
    """The sizes of a product: `batches` of C[m, n] += A[m, k] B[k, n], computed `step` of k at a time."""

    batches: int
    m: int
    n: int
    k: int
    step: int


@dataclass(frozen=True)
class Operand:
    """A buffer with an operand, or with a piece of it: `transposed` in memory, in rows of `stride` elements."""

    buffer: Any
    element: str
    transposed: bool
    stride: int


def raise_products(module: Any, chip: ChipDescription) -> int:
    """Rewrite the products of a structured module, in MLIR's bindings, in place. Returns how many it has raised."""
    unit = chip.matrix
    raised = 0
    if unit is None:
        return raised
    with module.context, ir.Location.unknown():
        for function in functions(module):
            editor = Editor(function, chip)
            found = [op for op in nested(function.regions[0].blocks[0]) if op.name in PRODUCTS]
            chosen = {op: extent for op in found if (extent := extent_of(editor, unit, op)) is not None}
            kept = residents(editor, unit, list(chosen))
            for operation, extent in chosen.items():
                _raise(editor, unit, operation, extent, kept.get(operation))
                raised += 1
    return raised


def extent_of(editor: Editor, unit: MatrixUnit, operation: Any, *, turned: bool = False) -> Extent | None:
    """How the unit computes a product, or with `turned` the transposed one; None if it cannot."""
    chip = editor.chip
    a, b, c = operation.operands
    kinds = [element_of(value) for value in (a, b, c)]
    if any(kind not in OF_MLIR for kind in kinds):
        return None
    names = [OF_MLIR[kind].name for kind in kinds]
    if unit.product(names[0], names[1], names[2]) is None:
        return None
    *batch, m, k = shape_of(a) or ()
    n = (shape_of(b) or ())[-1]
    if turned:
        m, n = n, m
    batches = math.prod(batch)
    operands = ((unit.a, kinds[0]), (unit.b, kinds[1]))
    reached = all(editor.way(editor.vector, memory, kind) for memory, kind in operands)
    readable = chip.memory(unit.sums).core_access or editor.unit(unit.sums, editor.vector, kinds[2])
    if not reached or not readable or batches > MOST_BATCHES:
        return None
    if batches * m * n * byte_size(kinds[2]) > chip.local_bytes(chip.memory(unit.sums)):
        return None
    step = k
    while step > 1 and step % 2 == 0 and not _fits(editor, unit, batches, m, n, step, kinds):
        step //= 2
    if not _fits(editor, unit, batches, m, n, step, kinds):
        return None
    if step < k and not _may_cut(editor, unit, step, kinds):
        return None
    sizes = (m * step, step * n, m * n)
    aligned = all(
        size * byte_size(kind) % unit.alignment == 0 for size, kind in zip(sizes, kinds, strict=True)
    )
    return Extent(batches, m, n, k, step) if batches == 1 or aligned else None


def _fits(
    editor: Editor, unit: MatrixUnit, batches: int, m: int, n: int, k: int, kinds: Sequence[str]
) -> bool:
    """Whether both operands fit twice, so that one pair is moved while the other is multiplied."""
    sizes = {unit.a: 0, unit.b: 0}
    sizes[unit.a] += m * byte_size(kinds[0])
    sizes[unit.b] += n * byte_size(kinds[1])
    return all(
        2 * batches * k * rows <= editor.chip.local_bytes(editor.chip.memory(memory))
        for memory, rows in sizes.items()
    )


def _may_cut(editor: Editor, unit: MatrixUnit, step: int, kinds: Sequence[str]) -> bool:
    """Whether pieces of `step` of k are aligned for the engines that move them and for the matrix unit. A piece begins
    at a multiple of `step` elements, or of `step` rows.
    """
    for memory, kind in zip((unit.a, unit.b), kinds, strict=False):
        way = editor.way(editor.vector, memory, kind)
        channel = editor.unit(editor.vector, way[0], kind) if way else None
        if channel is None:
            return False
        if step * byte_size(kind) % max(editor.engine(channel).alignment, unit.alignment):
            return False
    return True


def _raise(
    editor: Editor, unit: MatrixUnit, operation: Any, extent: Extent, resident: Resident | None
) -> None:
    editor.before(operation)
    a, b, initial = operation.operands
    kind = operation.results[0].type
    element = element_of(initial)
    shape: Shape = tuple(kind.shape)
    added = None
    if resident is not None:
        sums, begun = resident.sums, True
        resident.update(editor, initial)
    else:
        sums = editor.buffer(shape, element, "sums", unit.sums)
        begun = not is_zero(initial)
        if begun and editor.chip.memory(unit.sums).core_access:
            editor.write(sums, initial)
        elif begun:
            added, begun = initial, False
    left = _Pieces(editor, unit, unit.a, a, extent, inner=1)
    right = _Pieces(editor, unit, unit.b, b, extent, inner=0)
    long = extent.step == extent.k and extent.batches == 1 and (left.is_long or right.is_long)
    halved = long and _may_cut(editor, unit, extent.k // 2, [element_of(a), element_of(b)])
    if halved:
        extent = replace(
            extent, step=extent.k // 2
        )  # of which the first is multiplied while the second is moved
    for start in range(0, extent.k, extent.step):
        adds: Any = editor.constant(int(begun or start > 0), editor.types.i1)
        if resident is not None and resident.accumulates is not None and start == 0:
            adds = resident.accumulates
        x, y = (operand.piece(start, extent.step) for operand in (left, right))
        token = _multiply(editor, unit, extent, sums, x, y, adds)
        if not halved or start > 0:
            editor.wait(token, MATRIX)
    if resident is not None:
        value = resident.result(editor, kind)
    else:
        value = _read_sums(editor, unit, sums, kind)
    if added is not None:
        name = "arith.addi" if element.startswith("i") else "arith.addf"
        value = editor.value(name, [added, value], kind)
    operation.results[0].replace_all_uses_with(value)
    operation.erase()
    for pieces in (left, right):
        pieces.erase_sources()


def _read_sums(editor: Editor, unit: MatrixUnit, sums: Any, kind: Any) -> Any:
    """The sums as a tensor, for vector code."""
    if editor.chip.memory(unit.sums).core_access:
        return editor.read(sums, kind)
    return read_apart(editor, unit, sums, kind)


def _multiply(
    editor: Editor, unit: MatrixUnit, extent: Extent, sums: Any, a: Operand, b: Operand, accumulate: Any
) -> Any:
    """One command for each batch. Returns the last token."""
    kinds = {"a_type": a.element, "b_type": b.element, "c_type": _sums_of(unit, a.element, b.element)}
    k = extent.step
    sizes = {
        "m": extent.m, "n": extent.n, "k": k, "c_stride": extent.n,
        "a_stride": a.stride, "b_stride": b.stride,
    }  # fmt: skip
    attributes = {name: editor.integer(size) for name, size in sizes.items()}
    attributes |= {name: ir.StringAttr.get(kind) for name, kind in kinds.items()}
    if a.transposed:
        attributes["transpose_a"] = ir.UnitAttr.get()
    if b.transposed:
        attributes["transpose_b"] = ir.UnitAttr.get()
    token = None
    for batch in range(extent.batches):
        steps = (extent.m * extent.n, extent.m * k, k * extent.n)
        c_at, a_at, b_at = (
            editor.advanced(buffer, editor.constant(batch * step), kind) if batch else buffer
            for buffer, step, kind in zip(
                (sums, a.buffer, b.buffer), steps, (kinds["c_type"], a.element, b.element), strict=True
            )
        )
        token = editor.create(
            NpuMatrix, [editor.types.i64], attributes,
            c=c_at, a=a_at, b=b_at, accumulate=accumulate,
        ).results[0]  # fmt: skip
    return token


def _sums_of(unit: MatrixUnit, a: str, b: str) -> str:
    """The type of sums by MLIR's name."""
    names = (OF_MLIR[a].name, OF_MLIR[b].name)
    for sums in ("f32", "i32", "f64"):
        if unit.product(*names, OF_MLIR[sums].name) is not None:
            return sums
    raise KeyError(names)


class _Pieces:
    """The pieces of an operand in its memory, one for each step of k. `inner` is k's dimension, of the last two."""

    def __init__(
        self, editor: Editor, unit: MatrixUnit, memory: str, value: Any, extent: Extent, inner: int
    ) -> None:
        self._editor, self._memory, self._extent, self._inner = editor, memory, extent, inner
        self._element = element_of(value)
        self._replaced: list[Any] = []
        self._batch = [extent.batches] if len(shape_of(value) or ()) == 3 else []
        whole = extent.step == extent.k
        source, crossed = _behind_transpose(value)
        load = _loaded(editor, source, memory if whole else editor.vector)
        self._transposed = unit.transposes and crossed
        self._whole: Any = None
        """The operand in its own memory."""
        if load is None:
            self._vector = editor.written(source if self._transposed else value, "operand")
            self._replaced = [value.owner] if self._transposed else []
            return
        self._transposed = unit.transposes and crossed != _lies_across(load)
        straight = list(range(len(shape_of(value) or ())))
        swapped = [*straight[:-2], straight[-1], straight[-2]]
        order = swapped if crossed != self._transposed else straight
        place, location = editor.at, editor.location
        editor.before(load.operation)
        buffer = fetched(editor, load, memory if whole else editor.vector, "operand", order)
        editor.at, editor.location = place, location
        self._replaced = [value.owner, source.owner] if crossed else [source.owner]
        if whole:
            self._whole = buffer
        else:
            self._vector = buffer

    @property
    def is_long(self) -> bool:
        """Whether moving the whole operand from the vector memory takes so long that it pays to do so by halves."""
        editor = self._editor
        channel = editor.unit(editor.vector, self._memory, self._element)
        if self._whole is not None or channel is None or self._extent.k % 32:
            return False
        engine = editor.engine(channel)
        outer = self._extent.n if self._inner == 0 else self._extent.m
        size = self._extent.k * outer * byte_size(self._element)
        return size / engine.bytes_per_cycle >= LONG * engine.start_cycles

    def piece(self, start: int, step: int) -> Operand:
        """The piece of `step` that begins at `start`. The core has waited for it."""
        editor, extent = self._editor, self._extent
        outer = extent.n if self._inner == 0 else extent.m
        k_first = (self._inner == 0) != self._transposed
        rows, columns = (extent.k, outer) if k_first else (outer, extent.k)
        offset = start * columns if k_first else start
        source = self._vector if self._whole is None else self._whole
        if offset:
            source = editor.advanced(source, editor.constant(offset), self._element)
        if self._whole is not None:
            return Operand(source, self._element, self._transposed, columns)
        sizes = [*self._batch, *((step, outer) if k_first else (outer, step))]
        strides = [*([rows * columns] if self._batch else []), columns, 1]
        target = editor.buffer(tuple(sizes), self._element, "operand", self._memory)
        editor.wait(*carried(editor, source, tuple(sizes), self._element, target, self._memory, strides))
        return Operand(target, self._element, self._transposed, sizes[-1])

    def erase_sources(self) -> None:
        """Erase the load that the transfer replaces, and the transposition behind it."""
        for owner in self._replaced:
            owner.operation.erase()


def _behind_transpose(value: Any) -> tuple[Any, bool]:
    """What a transposition of the last two dimensions, for this operand alone, is made of; and whether it is."""
    owner = value.owner
    if getattr(owner, "name", "") != "linalg.transpose":
        return value, False
    order = list(owner.attributes["permutation"])
    straight = list(range(len(order)))
    if order != [*straight[:-2], straight[-1], straight[-2]] or len(list(value.uses)) != 1:
        return value, False
    return owner.operands[0], True


def _loaded(editor: Editor, value: Any, memory: str) -> Load[Any] | None:
    """The load of a value that can go to `memory` directly: it has no other use, and no elements of its own for what is
    not loaded.
    """
    view = Load.dyn_cast(getattr(value.owner, "operation", None))
    if view is None or view.volatile or len(list(value.uses)) != 1:
        return None
    if mover(editor, view, editor.everywhere, memory) is None or filling(editor, view.other)[1] is not None:
        return None
    return view


def _lies_across(view: Load[Any]) -> bool:
    """Whether memory is contiguous along the last dimension but one, and not along the last."""
    return _is_one(view.strides[-2]) and not _is_one(view.strides[-1])


def _is_one(value: Any) -> bool:
    owner = value.owner
    if getattr(owner, "name", "") != "arith.constant":
        return False
    return bool(owner.attributes["value"].value == 1)
