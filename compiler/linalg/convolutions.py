"""Convolutions that a kernel writes as sums of products (implicit GEMM) become `linalg.conv_2d_nhwc_hwcf`.

A kernel adds, in loops over the rows and columns of a filter, and maybe over channels, products of a tile of pixels by
channels with channels by filters. Where all of these tiles of pixels are windows of one larger tile, the loops over the
filter are one convolution of that tile. What has to be proved for that:

- the loops do nothing but add these products, see `nests`;
- addresses are linear in the numbers of rows and columns, with the pixels' own strides as a common measure;
- what is out of bounds, the padding, is so by the window's own row, column or channel, and counts as 0;
- the windows overlap, and together they have no holes: else more would be read than the kernel reads.

The order in which products are added is the named operation's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from triton_porting_kit.abi.intervals import OPERANDS, Step
from triton_porting_kit.compiler.dialect.operations import Load
from triton_porting_kit.compiler.structured.poly import ONE, ZERO, Poly
from triton_porting_kit.toolchain.mlir import ir

from .convolving import Convolution, Loop, Tile, emit
from .integers import Integers, Promises, Unknown
from .nests import Nest, nests
from .windows import Access, Bound, Digit, Reader, digits, ratio

ROW, COLUMN, CHANNEL = 1, 2, 3
"""Dimensions of a window, whose first is the image."""
STEEPEST = 16
"""The largest stride or dilation."""


@dataclass
class Axis:
    """One of the two directions of a convolution."""

    pixels: int
    """How many pixels of the result."""
    digit: Digit | None = None
    """What counts the filter's elements; None if it has one only."""
    size: int = 1
    """How many elements the filter has."""
    stride: int = 1
    dilation: int = 1
    unit: Poly = ZERO
    """The distance between elements of the window."""

    @property
    def window(self) -> int:
        """How many elements a window has."""
        return (self.pixels - 1) * self.stride + (self.size - 1) * self.dilation + 1

    @property
    def overlaps(self) -> bool:
        """Whether neighbouring windows have elements in common."""
        return self.pixels > 1 and self.digit is not None and self.stride <= (self.size - 1) * self.dilation

    @property
    def has_holes(self) -> bool:
        """Whether there are elements of the tile in no window."""
        seen = {
            pixel * self.stride + at * self.dilation
            for pixel in range(self.pixels)
            for at in range(self.size)
        }
        return len(seen) != self.window


def recognise(module: Any) -> None:
    """Replace what is a convolution in the kernel of a structured module.

    What a launch must promise for that is added to the kernel's promises.
    """
    with module.context, ir.Location.unknown():
        for view in list(module.body.operations):
            if "tpk.kernel" in view.operation.attributes:
                _recognise(view.operation)


def _recognise(kernel: Any) -> None:
    for nest in nests(kernel):
        try:
            convolution, wrapping = _convolution(nest)
            steps = Promises(kernel).of(wrapping)
        except Unknown:
            continue
        if (
            steps and "tpk.promises" not in kernel.attributes
        ):  # this kernel is for launches that promise nothing
            continue
        if steps:
            _promise(kernel, steps)
        emit(convolution)


def _promise(kernel: Any, steps: Sequence[Step]) -> None:
    """Add steps, whose operands are numbers among themselves, to the promises that a launch must keep."""
    given = list(kernel.attributes["tpk.promises"])
    before = len(given) // 3
    for op, *operands in steps:
        count = OPERANDS[op]
        given += [int(op), *(operand + before * (place < count) for place, operand in enumerate(operands))]
    kernel.attributes["tpk.promises"] = ir.DenseI64ArrayAttr.get(given)


def _convolution(nest: Nest) -> tuple[Convolution, list[Any]]:
    """The convolution that a nest is, and the sums of i32 that must not wrap around. Raises `Unknown`."""
    integers = Integers(nest, [loop.regions[0].blocks[0].arguments[0] for loop in nest.others])
    pairs = []
    for product, counters in nest.instances:
        reader = Reader(integers, nest, counters)
        pixels, weights = (reader.access(_load(operand)) for operand in list(product.operands)[:2])
        pairs.append((pixels, weights))
    pixels, weights = pairs[0]
    if len(pixels.shape) not in (2, 3) or len(weights.shape) != 2:
        raise Unknown
    if any((a.kind, b.kind) != (pixels.kind, weights.kind) for a, b in pairs):
        raise Unknown
    found = digits([[*a.sums, *b.sums] for a, b in pairs])
    rows, columns = _axes(pixels, found)
    loops = []
    for digit in found:
        if digit not in (rows.digit, columns.digit):
            loops.append(Loop(digit.size, integers.symbol(object()), digit.steps))
    count = len(pixels.sums)
    window = _window(pixels, rows, columns, loops)
    filters = _weights(
        weights, rows, columns, [replace(loop, steps=loop.steps[count:]) for loop in loops], count
    )
    strides, dilations = (rows.stride, columns.stride), (rows.dilation, columns.dilation)
    result = (1, rows.pixels, columns.pixels, weights.shape[1])
    made = Convolution(nest, window, filters, result, strides, dilations, loops, integers)
    return made, list(integers.wrapping)


def _load(value: Any) -> Any:
    """The load of a product's operand. Its leading dimensions may have been collapsed: rows of pixels."""
    if isinstance(value.owner, ir.Block):
        raise Unknown
    operation = value.owner.operation
    if operation.name == "tensor.collapse_shape":
        groups = [[int(d) for d in group] for group in operation.attributes["reassociation"]]
        if groups != [[0, 1], [2]] or isinstance(operation.operands[0].owner, ir.Block):
            raise Unknown
        operation = operation.operands[0].owner.operation
    if operation.name != Load.OPERATION_NAME:
        raise Unknown
    return operation


def _axes(pixels: Access, found: Sequence[Digit]) -> tuple[Axis, Axis]:
    """Which digits count the rows and the columns of the filter."""
    chunk = pixels.strides[-1] * Poly.constant(pixels.shape[-1])
    candidates = [digit for digit in found if digit.steps[0] != chunk]  # others count channels
    columns = _axis(pixels.shape[-2], pixels.strides[-2], candidates)
    candidates = [digit for digit in candidates if digit != columns.digit]
    rows = Axis(1)
    if len(pixels.shape) == 3:
        rows = _axis(pixels.shape[0], pixels.strides[0], candidates)
    elif candidates:
        rows = Axis(1, candidates[0], candidates[0].size, unit=candidates[0].steps[0])
    if rows.has_holes or columns.has_holes or not (rows.overlaps or columns.overlaps):
        raise Unknown
    return rows, columns


def _axis(pixels: int, stride: Poly, candidates: Sequence[Digit]) -> Axis:
    """The axis along which neighbouring pixels have this distance, with the digit of the smallest dilation."""
    found = Axis(pixels, unit=stride)
    for digit in candidates:
        common = ratio(stride, digit.steps[0])
        if common is None or max(common[:2]) > STEEPEST:
            continue
        if found.digit is None or common[1] < found.dilation:
            found = Axis(pixels, digit, digit.size, common[0], common[1], common[2])
    return found


def _step(axis: Axis, number: int) -> int:
    """What a sum grows by from one element of the filter to the next."""
    step = ZERO if axis.digit is None else axis.digit.steps[number]
    if step.value is None:
        raise Unknown
    return step.value


def _window(pixels: Access, rows: Axis, columns: Axis, loops: Sequence[Loop]) -> Tile:
    """The tile that all products' pixels are windows of: image, rows, columns, channels."""
    first = 4 - len(pixels.shape)
    axes = {ROW: rows, COLUMN: columns}
    bounds = []
    for number, bound in enumerate(pixels.bounds, 1):
        steps = {place: _step(axis, number) for place, axis in axes.items()}
        place = None if bound.dim is None else bound.dim + first
        factor = bound.factor
        if place is None and steps[ROW] and first == ROW + 1:  # the only row of pixels
            place, factor = ROW, steps[ROW]
        elif place in axes:
            axis = axes[place]
            factor, rest = divmod(bound.factor, axis.stride)
            if rest or (axis.digit is not None and steps[place] != factor * axis.dilation):
                raise Unknown
        if any(step for other, step in steps.items() if other != place):
            raise Unknown
        bounds.append(Bound(place, factor, _along(bound.rest, loops, number)))
    shape = (1, rows.window, columns.window, pixels.shape[-1])
    strides = (ONE, rows.unit, columns.unit, pixels.strides[-1])
    return Tile(pixels.load, shape, _along(pixels.offset, loops, 0), strides, bounds, pixels.conditions)


def _weights(weights: Access, rows: Axis, columns: Axis, loops: Sequence[Loop], before: int) -> Tile:
    """The filter: rows, columns, channels, filters. `before` sums of a digit are of pixels."""
    bounds = []
    for number, bound in enumerate(weights.bounds, 1):
        if _step(rows, before + number) or _step(columns, before + number):
            raise Unknown
        place = None if bound.dim is None else bound.dim + 2
        bounds.append(Bound(place, bound.factor, _along(bound.rest, loops, number)))
    steps = [ONE if axis.digit is None else axis.digit.steps[before] for axis in (rows, columns)]
    shape = (rows.size, columns.size, *weights.shape)
    offset = _along(weights.offset, loops, 0)
    return Tile(weights.load, shape, offset, (*steps, *weights.strides), bounds, weights.conditions)


def _along(sum_: Poly, loops: Sequence[Loop], number: int) -> Poly:
    """A sum, with what it grows by in the loops that stay."""
    for loop in loops:
        sum_ = sum_ + loop.counter * loop.steps[number]
    return sum_
