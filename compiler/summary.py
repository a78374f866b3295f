"""Which part of a kernel's multiply-adds and bytes ended up in named operations (``tpk compile --summary``).

A named operation is one of which a form says as a whole what it does, so that a unit of a chip, or the next compiler,
can execute it as a whole: a product of the matrix unit, a transfer, ``linalg.matmul``. The rest is left to code of
elements.

`needs` counts what a structured kernel computes and accesses, at each place of its source. `summarised` compares that
with the named operations that another form of the same kernel has at these places. To add a form, give `FORMS` a table
with a `Named` for each of its operations, by name, and let `tpk compile` pass the form on. Operations must keep the
location of what they are made from. A loop that the form adds to compute one operation in pieces has constant bounds
and the attribute `UNORDERED`; all other loops are the kernel's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from triton_porting_kit.compiler import locations
from triton_porting_kit.compiler.dialect import npu
from triton_porting_kit.compiler.dialect import operations as tpk
from triton_porting_kit.compiler.tiles.programs import UNORDERED
from triton_porting_kit.errors import SourceLocation
from triton_porting_kit.toolchain.mlir import ir

MULTIPLY_ADDS, BYTES = "multiply-adds", "bytes"

REST = "code of elements"

Place = SourceLocation | None


@dataclass(frozen=True)
class Named:
    """A named operation: `by` whom it is executed, and how much of a `measure` one execution is. None: all that its
    place in the kernel needs.
    """

    measure: str
    by: str
    amount: Callable[[Any], int | None]


@dataclass
class Row:
    """What one place of a kernel needs of a measure, and how much of that each named operation does."""

    place: Place
    what: str
    measure: str
    amount: int
    named: dict[str, int] = field(default_factory=dict)

    @property
    def part(self) -> float:
        """The part in named operations."""
        return sum(self.named.values()) / self.amount


@dataclass
class Summary:
    """The rows of a kernel, in the order of the program. A loop whose length is not known counts as one iteration."""

    rows: list[Row]

    def total(self, measure: str, by: str | None = None) -> int:
        """How much of a measure the kernel needs, or how much of that `by` does."""
        rows = [row for row in self.rows if row.measure == measure]
        return sum(row.amount if by is None else row.named.get(by, 0) for row in rows)

    def part(self, measure: str) -> float:
        """The part of a measure in named operations; 1 if the kernel needs none."""
        rows = [row for row in self.rows if row.measure == measure]
        named = sum(sum(row.named.values()) for row in rows)
        return named / self.total(measure) if rows else 1.0

    def __str__(self) -> str:
        lines = []
        for measure in (MULTIPLY_ADDS, BYTES):
            total = self.total(measure)
            names = dict.fromkeys(by for row in self.rows if row.measure == measure for by in row.named)
            shares = [f"{_percent(self.total(measure, by) / total)} {by}" for by in names]
            if total and self.part(measure) < 1:
                shares.append(f"{_percent(1 - self.part(measure))} {REST}")
            lines.append(f"{measure}: {total:,}" + (f"; {', '.join(shares)}" if shares else ""))
        lines.append(f"{'line':>6} {'what':<18} {'amount':>14}  in")
        for row in self.rows:
            shares = [f"{_percent(amount / row.amount)} {by}" for by, amount in row.named.items()]
            if row.part < 1:
                shares.append(f"{_percent(1 - row.part)} {REST}")
            line = "" if row.place is None else str(row.place.line)
            unit = "" if row.measure == MULTIPLY_ADDS else " B"
            lines.append(f"{line:>6} {row.what:<18} {f'{row.amount:,}{unit}':>14}  {', '.join(shares)}")
        return "\n".join(lines)


def _percent(part: float) -> str:
    if 0 < part < 0.001:
        return "< 0.1 %"
    if 0.999 < part < 1:
        return "> 99.9 %"
    return f"{100 * part:.3g} %"


def summarised(structured: Any, module: Any, form: str) -> Summary:
    """The summary of a structured module, whose form named `form` is `module`; both in MLIR's bindings."""
    found: dict[tuple[Place, str], dict[str, float]] = defaultdict(dict)
    for operation, executions in _executed(module, lambda loop: UNORDERED in loop.attributes):
        named = FORMS[form].get(operation.name)
        if named is None:
            continue
        key = (_place(operation), named.measure)
        amount = named.amount(operation)
        done = math.inf if amount is None else executions * amount
        found[key][named.by] = found[key].get(named.by, 0) + done
    rows = needs(structured)
    once: dict[tuple[Place, str], int] = defaultdict(int)
    for row, single in rows:
        once[row.place, row.measure] += single
    for row, _ in rows:
        key = (row.place, row.measure)
        left = 1.0
        for by, done in found[key].items():
            part = min(left, done / once[key])
            left -= part
            if part:
                row.named[by] = round(part * row.amount)
    return Summary([row for row, _ in rows])


def needs(structured: Any) -> list[tuple[Row, int]]:
    """What a structured module needs, in the order of the program; and how much of that one execution is."""
    rows = []
    for operation, executions in _executed(structured, lambda loop: True):
        for name, measure, amount in (
            ("multiply and add", MULTIPLY_ADDS, _multiply_adds),
            *((what, BYTES, _accessed) for what in [_ACCESSES.get(operation.name)] if what),
        ):
            single = amount(operation)
            if single:
                what = "product" if operation.name in _PRODUCTS else name
                rows.append((Row(_place(operation), what, measure, executions * single), single))
    return rows


def _executed(module: Any, counted: Callable[[Any], bool]) -> Iterator[tuple[Any, int]]:
    """Every operation, and how often it is executed by the loops of known length for which `counted` is true."""
    for function in module.body.operations:
        for region in function.operation.regions:
            for block in region.blocks:
                yield from _of_block(block, 1, counted)


def _of_block(block: Any, executions: int, counted: Callable[[Any], bool]) -> Iterator[tuple[Any, int]]:
    for view in block.operations:
        operation = view.operation
        yield operation, executions
        if operation.name in _FUNCTIONS_OF_ELEMENTS:
            continue
        times = 1
        if operation.name == "scf.for" and counted(operation):
            times = _iterations(operation)
        for region in operation.regions:
            for inner in region.blocks:
                yield from _of_block(inner, executions * times, counted)


def _iterations(loop: Any) -> int:
    """The number of iterations of a loop; 1 if it is not known."""
    bounds = []
    for value in list(loop.operands)[:3]:
        owner = value.owner
        if getattr(owner, "name", "") != "arith.constant":
            return 1
        bounds.append(int(owner.attributes["value"].value))
    start, stop, step = bounds
    return max(0, -(-(stop - start) // step))


def _place(operation: Any) -> Place:
    return locations.source_location(operation.location)


# --- what an operation of the structured form needs ---------------------------------------------------

_PRODUCTS = ("linalg.matmul", "linalg.batch_matmul")
_FUNCTIONS_OF_ELEMENTS = (
    tpk.Reduce.OPERATION_NAME,
    tpk.Scan.OPERATION_NAME,
    tpk.Map.OPERATION_NAME,
    "linalg.generic",
)
"""Operations whose regions are no code of the program."""
_ACCESSES = {
    tpk.Load.OPERATION_NAME: "load",
    tpk.Store.OPERATION_NAME: "store",
    tpk.Gather.OPERATION_NAME: "gather",
    tpk.Scatter.OPERATION_NAME: "scatter",
    tpk.AtomicRmw.OPERATION_NAME: "atomic",
    tpk.AtomicCas.OPERATION_NAME: "atomic",
}
_SUMS = ("arith.addf", "arith.subf")


def _multiply_adds(operation: Any) -> int:
    """Of products, and of multiplications of floats whose results are added or summed up."""
    if operation.name in _PRODUCTS:
        return _of_product(operation)
    elements = _elements(operation.results[0]) if len(operation.results) else 0
    if operation.name == "math.fma":
        return elements
    if operation.name == "arith.mulf" and any(_adds(use.owner) for use in operation.results[0].uses):
        return elements
    return 0


def _adds(user: Any) -> bool:
    if user.name in _SUMS:
        return True
    if not tpk.Reduce.isa(user.operation):
        return False
    block = user.operation.regions[0].blocks[0]
    return any(inner.operation.name in _SUMS for inner in block.operations)


def _of_product(operation: Any) -> int:
    """Multiply-adds of ``linalg.matmul`` and ``linalg.batch_matmul``, whose operands may be transposed."""
    first, _, result = (ir.ShapedType(value.type).shape for value in operation.operands)
    return int(math.prod(first) * result[-1])


def _of_convolution(operation: Any) -> int:
    """Multiply-adds of ``linalg.conv_2d_nhwc_hwcf``: each pixel of the result with a whole filter."""
    _, weights, result = (ir.ShapedType(value.type).shape for value in operation.operands)
    return int(math.prod(result[:-1]) * math.prod(weights))


def _accessed(operation: Any) -> int:
    """Bytes of the tile, or of the scalar, that an access reads or writes."""
    tile = operation.results[0] if len(operation.results) else tpk.Store(operation).tile
    if tpk.Scatter.isa(operation):
        tile = tpk.Scatter(operation).tile
    return _bytes_of(tile)


def _elements(value: Any) -> int:
    """Elements of a tensor; 0 for scalars."""
    return math.prod(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else 0


def _bytes_of(value: Any) -> int:
    return max(1, _elements(value)) * _element_bytes(str(getattr(value.type, "element_type", value.type)))


def _element_bytes(element: str) -> int:
    from triton_porting_kit.compiler.structured.types import element_bits

    return 8 if element.startswith("!") else max(1, element_bits(element) // 8)


# --- the named operations of each form ----------------------------------------------------------------


def _of_matrix(operation: Any) -> int:
    view = npu.NpuMatrix(operation)
    return int(view.m * view.n * view.k)


def _of_transfer(operation: Any) -> int:
    view = npu.NpuDma(operation)
    return 0 if view.direction == npu.MOVE else math.prod(view.shape) * _element_bytes(view.element)


def _of_indexed(operation: Any) -> int:
    view: Any = npu.NpuIndexed(operation)
    return int(view.count * _element_bytes(view.element))


def _all(operation: Any) -> None:
    """It may be of dynamic size: bounds clip what one execution does, as they clip what is needed."""


FORMS: Mapping[str, Mapping[str, Named]] = {
    "tiles": {
        npu.NpuMatrix.OPERATION_NAME: Named(MULTIPLY_ADDS, "matrix unit", _of_matrix),
        npu.NpuDma.OPERATION_NAME: Named(BYTES, "transfers", _of_transfer),
        npu.NpuGather.OPERATION_NAME: Named(BYTES, "gathers and scatters", _of_indexed),
        npu.NpuScatter.OPERATION_NAME: Named(BYTES, "gathers and scatters", _of_indexed),
    },
    "linalg": {
        **{name: Named(MULTIPLY_ADDS, name, _of_product) for name in _PRODUCTS},
        "linalg.conv_2d_nhwc_hwcf": Named(MULTIPLY_ADDS, "linalg.conv_2d_nhwc_hwcf", _of_convolution),
        **{
            name: Named(BYTES, name, _all)
            for name in ("memref.copy", "bufferization.materialize_in_destination")
        },
    },
}
"""The named operations of each form of a kernel."""
