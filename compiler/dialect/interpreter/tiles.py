"""Operations that create, move and combine tensors, and messages to the user."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from triton_porting_kit.compiler.dialect.operations import Map, Print, Reduce, Scan
from triton_porting_kit.toolchain.mlir import ir

from .elementwise import larger, smaller, unsigned
from .errors import KernelAssertion
from .formats import FORMATS, convert, dtype_of, is_float, narrow, widen
from .program import Block, Operation, Type, Value

if TYPE_CHECKING:
    from .machine import Run


# --- creation ----------------------------------------------------------------------------------------


def constant(run: Run, op: Operation) -> Any:
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr):
        return number(attribute.value, op.element)
    if attribute.is_splat:
        return np.full(op.shape, number(attribute.get_splat_value().value, op.element))
    if op.element in FORMATS:
        return _patterns(str(attribute), op)
    return np.array(attribute).astype(dtype_of(op.element), copy=False).reshape(op.shape)


def number(value: Any, element: str) -> Any:
    """A Python number as a scalar of a type. Any NaN represents all of them."""
    if element in FORMATS:
        return narrow(np.float64(value), element)[()]
    return dtype_of(element).type(value)


def _patterns(text: str, op: Operation) -> Any:
    """The elements of a constant of a type that NumPy lacks: a hexadecimal string, or a list of numbers and
    patterns."""
    dtype = dtype_of(op.element)
    inner = text[len("dense<") : text.rindex("> : ")]
    if inner.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(inner[3:-1]), dtype).reshape(op.shape)
    elements = [
        int(found, 16) if found.startswith("0x") else narrow(np.float64(found), op.element)
        for found in re.findall(r"[^][, ]+", inner)
    ]
    return np.array(elements, dtype).reshape(op.shape)


def zeros(run: Run, op: Operation, *_: Any) -> Any:
    """Undefined values, and destinations that are overwritten."""
    return np.zeros(op.shape, dtype_of(op.element))[()]


def splat(run: Run, op: Operation, value: Any) -> Any:
    return np.full(op.shape, value)


def count(run: Run, op: Operation) -> Any:
    """``tpk.range``"""
    return (np.arange(op.shape[0]) + op.view.start).astype(np.int32)


# --- moving ------------------------------------------------------------------------------------------


def reshape(run: Run, op: Operation, value: Any) -> Any:
    return np.reshape(value, op.shape)


def broadcast(run: Run, op: Operation, value: Any, _destination: Any) -> Any:
    return np.broadcast_to(np.expand_dims(value, op.integers("dimensions")), op.shape)


def transpose(run: Run, op: Operation, value: Any, _destination: Any) -> Any:
    return np.transpose(value, op.integers("permutation"))


def extract(run: Run, op: Operation, value: Any, *indices: Any) -> Any:
    return np.asarray(value)[tuple(map(int, indices))]


def concat(run: Run, op: Operation, *values: Any) -> Any:
    return np.concatenate(values, axis=op.integer("dim"))


def join(run: Run, op: Operation, first: Any, second: Any) -> Any:
    return np.stack([first, second], axis=-1)


def split(run: Run, op: Operation, x: Any) -> Any:
    return np.asarray(x)[..., 0], np.asarray(x)[..., 1]


def unpack(run: Run, op: Operation, x: Any) -> Any:
    x, dim = unsigned(x), op.view.dim
    halves = np.stack([x & np.uint8(15), x >> np.uint8(4)], axis=dim + 1)
    return halves.reshape(op.shape).astype(dtype_of(op.element))


def repeat(run: Run, op: Operation, x: Any) -> Any:
    return np.repeat(x, op.view.times, axis=op.view.dim)


def gather_along(run: Run, op: Operation, source: Any, indices: Any) -> Any:
    """Gather along a dimension. Indices of fewer than 32 bits are unsigned, because Triton has no negative ones.

    The result of an index out of bounds is undefined; here it is the first element along the dimension.
    """
    axis = op.view.axis
    indices = np.asarray(indices) if np.asarray(indices).dtype.itemsize >= 4 else unsigned(indices)
    inside = (indices >= 0) & (indices < source.shape[axis])
    cut = tuple(slice(None) if d == axis else slice(size) for d, size in enumerate(indices.shape))
    return np.take_along_axis(source[cut], np.where(inside, indices, 0).astype(np.int64), axis)


def histogram(run: Run, op: Operation, values: Any, mask: Any = True) -> Any:
    """Count each number from 0 to the number of bins - 1; others are not counted."""
    (bins,) = op.shape
    found = unsigned(values)
    counted = found[np.broadcast_to(mask, found.shape) & (found < bins)]
    return np.bincount(counted.astype(np.int64), minlength=bins).astype(dtype_of(op.element))


# --- floats ------------------------------------------------------------------------------------------


def fp_to_fp(run: Run, op: Operation, x: Any) -> Any:
    """Convert to an 8-bit float. Rounding to nearest never produces an infinity."""
    toward_zero = op.view.rounding == "rtz"
    return convert(x, op.sources[0], op.element, toward_zero=toward_zero, keep_infinity=toward_zero)


def clampf(run: Run, op: Operation, *values: Any) -> Any:
    x, low, high = (widen(value, op.element) for value in values)
    nan = op.view.propagate_nan
    return narrow(smaller(larger(x, low, propagate_nan=nan), high, propagate_nan=nan), op.element)


def matmul(run: Run, op: Operation, a: Any, b: Any, c: Any) -> Any:
    """c + a * b, summed in f64 and rounded once: more precise than any `tpk.input_precision` requires."""
    if not is_float(op.element):
        product = np.matmul(a.astype(np.int64), b.astype(np.int64))
        return (c.astype(np.int64) + product).astype(c.dtype)
    a, b, c = (
        widen(value, element).astype(np.float64) for value, element in zip((a, b, c), op.sources, strict=True)
    )
    return narrow(c + np.matmul(a, b), op.element)


# --- functions of elements, given by a region ---------------------------------------------------------


def reduce(run: Run, op: Operation, *inputs: Any) -> Any:
    """Combine neighbours, then the results. This keeps the order, and limits the rounding errors of sums."""
    view: Reduce[Value] = op.view
    combine = _Combination(run, op)
    parts = [np.moveaxis(value, view.axis, 0) for value in combine.hold(inputs)]
    while len(parts[0]) > 1:
        pairs = len(parts[0]) // 2
        first, second = ([part[half : 2 * pairs : 2] for part in parts] for half in (0, 1))
        combined = combine(first, second)
        parts = [np.concatenate([new, part[2 * pairs :]]) for new, part in zip(combined, parts, strict=True)]
    return tuple(combine.release([part[0] for part in parts]))


def scan(run: Run, op: Operation, *inputs: Any) -> Any:
    view: Scan[Value] = op.view
    combine, step = _Combination(run, op), -1 if view.reverse else 1
    parts = [np.moveaxis(value, view.axis, 0)[::step] for value in combine.hold(inputs)]
    results = [np.empty_like(part) for part in parts]
    current: Sequence[Any] = [part[0] for part in parts]
    for index in range(len(parts[0])):
        if index:
            current = combine(current, [part[index] for part in parts])
        for result, value in zip(results, current, strict=True):
            result[index] = value
    return tuple(np.moveaxis(result[::step], 0, view.axis) for result in combine.release(results))


class _Combination:
    """Combines partial results by a region. They are held as f32 if it only adds and multiplies narrower floats.

    Otherwise a sum that is rounded to 16 bits at each step would stop growing (docs/architecture.md).
    """

    def __init__(self, run: Run, op: Operation) -> None:
        self._run, self._op = run, op
        self._elements = [value.type.element for value in op.regions[0].operations[-1].operands]
        self._is_wide = _only_adds_and_multiplies(op.regions[0])
        self._region = op.regions[0]
        if self._is_wide:
            if self._region not in run.wide_regions:
                run.wide_regions[self._region] = _in_f32(self._region)
            self._region = run.wide_regions[self._region]

    def hold(self, values: Sequence[Any]) -> Sequence[Any]:
        """Convert elements to partial results."""
        if not self._is_wide:
            return values
        return [widen(value, element) for value, element in zip(values, self._elements, strict=True)]

    def release(self, values: Sequence[Any]) -> Sequence[Any]:
        """Convert partial results to elements."""
        if not self._is_wide:
            return values
        return [narrow(value, element) for value, element in zip(values, self._elements, strict=True)]

    def __call__(self, first: Sequence[Any], second: Sequence[Any]) -> Sequence[Any]:
        return each(self._run, self._region, [*first, *second])


def _only_adds_and_multiplies(region: Block) -> bool:
    inside = {*region.arguments, *(result for op in region.operations for result in op.results)}
    return len(region.operations) > 1 and all(
        op.name in ("arith.addf", "arith.mulf")
        and op.element not in ("f32", "f64")
        and inside.issuperset(op.operands)
        for op in region.operations[:-1]
    )


def _in_f32(region: Block) -> Block:
    """The same region with f32 values."""
    wide: dict[Value, Value] = {}

    def of(value: Value) -> Value:
        return wide.setdefault(value, Value(Type("f32", value.type.shape)))

    return Block(
        [of(value) for value in region.arguments],
        [
            replace(
                op, operands=[of(value) for value in op.operands], results=[of(value) for value in op.results]
            )
            for op in region.operations
        ],
    )


def map_elements(run: Run, op: Operation, *inputs: Any) -> Any:
    """Apply a function to `pack` elements at a time, which are adjacent in row-major order."""
    view: Map[Value] = op.view
    pack = view.pack
    given = [np.asarray(value).reshape(-1, pack)[:, k] for value in inputs for k in range(pack)]
    results = each(run, op.regions[0], given)
    groups = [results[first : first + pack] for first in range(0, len(results), pack)]
    return tuple(
        np.stack(group, axis=-1).reshape(result.type.shape or ())
        for group, result in zip(groups, op.results, strict=True)
    )


def each(run: Run, region: Block, values: Sequence[Any]) -> list[Any]:
    """The values that a region yields for each element of arrays of one shape; computed on whole arrays if possible."""
    shape = np.shape(values[0])
    if run.is_straight(region):
        return [np.broadcast_to(result, shape) for result in run.block(region, values)]
    flat = [np.asarray(value).reshape(-1) for value in values]
    rows = [run.block(region, row) for row in zip(*flat, strict=True)]
    kinds = [value.type.element for value in region.operations[-1].operands]
    if not rows:
        return [np.empty(shape, dtype_of(kind)) for kind in kinds]
    columns = zip(*rows, strict=True)
    return [
        np.array(column, dtype_of(kind)).reshape(shape) for column, kind in zip(columns, kinds, strict=True)
    ]


# --- control flow --------------------------------------------------------------------------------------


def for_loop(run: Run, op: Operation, low: Any, high: Any, step: Any, *carried: Any) -> Any:
    body = op.regions[0]
    current: Sequence[Any] = carried
    kind = dtype_of(body.arguments[0].type.element)
    for counter in range(int(low), int(high), int(step)):
        current = run.block(body, [kind.type(counter), *current])
    return tuple(current)


def while_loop(run: Run, op: Operation, *carried: Any) -> Any:
    before, after = op.regions
    current: Sequence[Any] = carried
    while True:
        condition, *forwarded = run.block(before, current)
        if not condition:
            return tuple(forwarded)
        following = run.block(after, forwarded)
        run.turn(op, following, current)
        current = following


def branch(run: Run, op: Operation, condition: Any) -> Any:
    chosen = op.regions[0 if condition else 1] if len(op.regions) > 1 or condition else Block([])
    return tuple(run.block(chosen, ()))


def call(run: Run, op: Operation, *values: Any) -> Any:
    return tuple(run.call(op, str(op.attributes["callee"].value), values))


# --- messages to the user -------------------------------------------------------------------------------


def check(run: Run, op: Operation, condition: Any) -> None:
    """``tpk.assert``. Raises `KernelAssertion` for the first element that is false."""
    if not np.all(condition):
        element = tuple(int(number) for number in np.argwhere(~np.asarray(condition))[0])
        raise KernelAssertion(run.at(op, element if np.ndim(condition) else None), op.view.message)


def show(run: Run, op: Operation, *values: Any) -> None:
    """``tpk.print``, in the format that Triton documents for its GPUs."""
    view: Print[Value] = op.view
    prefix = view.prefix if view.prefix.startswith((" ", ":")) else f" {view.prefix}"
    head = f"pid ({', '.join(map(str, run.program))})"
    if not values:
        run.tell(f"{head}{prefix}")
    for number, (value, element) in enumerate(zip(values, op.sources, strict=True)):
        write = _writer(view, number, element)
        value = np.asarray(widen(value, element) if is_float(element) else value)
        operand = f"(operand {number}) " if len(values) > 1 else ""
        for place in np.ndindex(value.shape):
            widths = (len(str(size - 1)) for size in value.shape)
            index = ", ".join(f"{at:{width}}" for at, width in zip(place, widths, strict=True))
            run.tell(f"{head} idx ({index}){prefix}{operand}{write(value[place])}")


def _writer(view: Print[Value], number: int, element: str) -> Callable[[Any], str]:
    is_address = number < len(view.pointers) and view.pointers[number]
    if is_float(element):
        return (lambda value: float(value).hex()) if view.hex else (lambda value: f"{float(value):f}")
    is_signed = number < len(view.isSigned) and view.isSigned[number]
    digits = 2 * dtype_of(element).itemsize
    if is_address or view.hex:
        return lambda value: f"0x{int(unsigned(value)):0{16 if is_address else digits}x}"
    return lambda value: str(int(value if is_signed or element == "i1" else unsigned(value)))
