"""The operations of ``tpk`` that access memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from triton_porting_kit.compiler.dialect.operations import (
    AtomicCas,
    AtomicPoll,
    AtomicRmw,
    Gather,
    Load,
    Scatter,
    Store,
    StructuredAccess,
)

from .elementwise import larger, smaller, unsigned
from .errors import OutOfBounds
from .formats import Array, dtype_of, is_float, narrow, widen
from .memory import NoArray
from .program import Operation, Value

if TYPE_CHECKING:
    from .machine import Run


def load(run: Run, op: Operation, *_: Any) -> Any:
    view: Load[Value] = op.view
    addresses, touched = _structured(run, op, view)
    return _read(run, op, addresses, touched, None if view.other is None else run[view.other])


def store(run: Run, op: Operation, *_: Any) -> None:
    view: Store[Value] = op.view
    addresses, touched = _structured(run, op, view)
    _write(run, op, addresses, touched, run[view.value])


def gather(run: Run, op: Operation, *_: Any) -> Any:
    view: Gather[Value] = op.view
    addresses = _explicit(run, view, op.element)
    mask = True if view.mask is None else run[view.mask]
    return _read(run, op, addresses, mask, None if view.other is None else run[view.other])


def scatter(run: Run, op: Operation, *_: Any) -> None:
    view: Scatter[Value] = op.view
    addresses = _explicit(run, view, view.value.type.element)
    _write(run, op, addresses, True if view.mask is None else run[view.mask], run[view.value])


def _structured(run: Run, op: Operation, view: StructuredAccess[Value]) -> tuple[Array, Any]:
    """The address of each element of the tile, and which are accessed (docs/architecture.md, "A structured access")."""
    tile = view.tile.type
    shape = tile.shape or ()
    address, touched = np.int64(run[view.offset]), np.ones(shape, bool)
    for d, size in enumerate(shape):
        index = np.arange(size).reshape([-1 if axis == d else 1 for axis in range(len(shape))])
        if view.low:
            low, high = run[view.low[d]], run[view.high[d]]
            if low < 0 or high > size:
                raise op.unknown(
                    f"its bounds {low} and {high} of dimension {d} are outside of the tile's {size}",
                    f"clamp both bounds to 0 ... {size}, as the importer does",
                )
            touched &= (low <= index) & (index < high)
        if d in view.wrap_dims:
            k = view.wrap_dims.index(d)
            modulus = run[view.wrap_size[k]]
            index = np.fmod(run[view.wrap_start[k]] + index, modulus if modulus else 1)
        address = address + run[view.strides[d]] * index
    if view.mask is not None:
        touched &= run[view.mask]
    size = dtype_of(tile.element).itemsize
    return np.broadcast_to(run[view.base] + address * np.int64(size), shape), touched


def _explicit(run: Run, view: Any, element: str) -> Array:
    size = 1 if view.byte_offsets else dtype_of(element).itemsize
    return np.asarray(run[view.base] + np.asarray(run[view.offsets]).astype(np.int64) * np.int64(size))


def _read(run: Run, op: Operation, addresses: Array, touched: Any, other: Any) -> Any:
    element = op.element
    result = np.zeros(addresses.shape, dtype_of(element))
    if other is not None:
        result[...] = other
    touched = np.broadcast_to(touched, addresses.shape)
    result[touched] = checked(
        run, op, touched, lambda: run.memory.read(addresses[touched].reshape(-1), element)
    )
    return result


def _write(run: Run, op: Operation, addresses: Array, touched: Any, value: Any) -> None:
    touched = np.broadcast_to(touched, addresses.shape)
    values = np.broadcast_to(value, addresses.shape)[touched].reshape(-1)
    checked(run, op, touched, lambda: run.memory.write(addresses[touched].reshape(-1), values))


def checked(run: Run, op: Operation, touched: Array, access: Callable[[], Any]) -> Any:
    """Access the touched elements. Raises `OutOfBounds`."""
    try:
        return access()
    except NoArray as error:
        element = tuple(int(number) for number in np.argwhere(touched)[error.place])
        shape, accessed = _tile_of(op)
        at = run.at(op, None if shape is None else element)
        raise OutOfBounds(at, error.address, dtype_of(accessed).itemsize, error.nearest) from None


def _tile_of(op: Operation) -> tuple[Any, str]:
    """The shape of what is accessed, None for a scalar, and the type of its elements."""
    view = op.view
    if hasattr(view, "unit"):  # a transfer
        return getattr(view, "shape", ()), view.element
    accessed = view.tile if hasattr(view, "tile") else op.results[0]
    kind = (view.expected if isinstance(view, AtomicPoll) else accessed).type
    return kind.shape, kind.element


# --- atomic operations -------------------------------------------------------------------------------


def _float_add(a: Any, b: Any, element: str) -> Any:
    return narrow(widen(a, element) + widen(b, element), element)


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """The maximum or minimum of signed integers, or of floats, where a number wins over NaN."""

    def choose(a: Any, b: Any, element: str) -> Any:
        if is_float(element):
            number = function(widen(a, element), widen(b, element), propagate_nan=False)
            return narrow(number, element)
        return (np.maximum if function is larger else np.minimum)(a, b)

    return choose


def _unsigned_extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def choose(a: Any, b: Any, element: str) -> Any:
        return function(unsigned(a), unsigned(b)).view(dtype_of(element))

    return choose


_KINDS: dict[str, Callable[[Any, Any, str], Any]] = {
    "add": lambda a, b, _: a + b,
    "fadd": _float_add,
    "max": _extreme(larger),
    "min": _extreme(smaller),
    "umax": _unsigned_extreme(np.maximum),
    "umin": _unsigned_extreme(np.minimum),
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "exch": lambda a, b, _: b,
}


def atomic_rmw(run: Run, op: Operation, *_: Any) -> Any:
    view: AtomicRmw[Value] = op.view
    combine, element = _KINDS[view.kind], op.element
    value = np.asarray(run[view.value])
    mask = True if view.mask is None else run[view.mask]

    def step(addresses: Array, chosen: Any) -> Array:
        found = run.memory.read(addresses, element)
        run.memory.write(addresses, np.asarray(combine(found, value[chosen].reshape(-1), element)))
        return found

    return _in_order(run, op, _explicit(run, view, element), mask, step)


def atomic_cas(run: Run, op: Operation, *_: Any) -> Any:
    view: AtomicCas[Value] = op.view
    compare, value = np.asarray(run[view.compare]), np.asarray(run[view.value])

    def step(addresses: Array, chosen: Any) -> Array:
        found = run.memory.read(addresses, op.element)
        bits = f"u{found.dtype.itemsize}"
        same = found.view(bits) == compare[chosen].reshape(-1).view(bits)
        run.memory.write(addresses[same], value[chosen].reshape(-1)[same])
        return found

    return _in_order(run, op, _explicit(run, view, op.element), True, step)


def _in_order(
    run: Run, op: Operation, addresses: Array, mask: Any, step: Callable[[Array, Any], Array]
) -> Any:
    """The results of `step`, called with addresses and their elements: for all at once, or for one after the other.

    The order matters only if elements share an address. Masked-off elements are 0.
    """
    touched = np.broadcast_to(mask, addresses.shape)
    result = np.zeros(addresses.shape, dtype_of(op.element))
    wanted = addresses[touched].reshape(-1)
    if np.unique(wanted).size == wanted.size:
        result[touched] = checked(run, op, touched, lambda: step(wanted, touched))
        return result
    for place in zip(*np.nonzero(touched), strict=True):
        only = np.zeros(touched.shape, bool)
        only[place] = True
        (result[place],) = checked(run, op, only, partial(step, addresses[place][None], only))
    return result


def atomic_poll(run: Run, op: Operation, *_: Any) -> Any:
    """Element by element; other programs run meanwhile."""
    view: AtomicPoll[Value] = op.view
    expected = np.asarray(run[view.expected])
    element = view.expected.type.element
    addresses = np.broadcast_to(_explicit(run, view, element), expected.shape)
    limit = None if view.timeout is None else int(run[view.timeout])
    start = time.monotonic_ns()
    result = np.zeros(expected.shape, bool)
    for place in np.ndindex(expected.shape):
        only = np.zeros(expected.shape, bool)
        only[place] = True
        wanted = expected[place].tobytes()
        while True:
            found = checked(run, op, only, partial(run.memory.read, addresses[place][None], element))
            result[place] = found.tobytes() == wanted
            if result[place] or (limit is not None and time.monotonic_ns() - start >= limit):
                break
            run.wait(op, limited=limit is not None)
    return result
