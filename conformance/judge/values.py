"""`Leaf`: an array that goes to a candidate or comes back, and how trees of arguments travel between processes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import KINDS, Array, Kind, from_bits, to_bits

ALIGNMENT = 64
BY_DEVICE_NAME = {kind.device: kind for kind in KINDS.values()}
"""Element types by the names that NumPy, torch and devices have for them."""
_SCALARS = (bool, int, float, str, type(None))


class Leaf(NamedTuple):
    """Values of an element type, in its host type."""

    values: Array
    kind: Kind

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.values))

    @property
    def wide(self) -> Array:
        """What an oracle computes with: floating-point values as float64."""
        return self.values.astype(np.float64) if self.kind.is_float else self.values


class Place(NamedTuple):
    """Where an array lies in shared memory."""

    kind: str
    shape: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, item: Any) -> Place:
        """What was sent as JSON."""
        kind, shape, offset = item
        return cls(kind, tuple(shape), offset)

    @property
    def size(self) -> int:
        """In bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * KINDS[self.kind].storage.itemsize


def kind_of(name: Any) -> Kind:
    """An element type by Triton's, NumPy's or torch's name. Raises `TaskError`."""
    plain = str(name).rpartition(".")[2]
    found = KINDS.get(plain) or BY_DEVICE_NAME.get(plain)
    if found is None:
        raise TaskError(f"no element type {name!r}; known are {', '.join(BY_DEVICE_NAME)}")
    return found


def leaf(value: Any) -> Leaf | None:
    """An array of NumPy's or torch's, or a pair of values and the name of a type; None for what is no array."""
    if isinstance(value, Leaf):
        return value
    if isinstance(value, np.ndarray):
        return Leaf(value, kind_of(value.dtype))
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "data_ptr"):
        kind = kind_of(value.dtype)
        plain = value.detach().cpu().contiguous()
        return Leaf((plain.float() if kind.storage != kind.host else plain).numpy(), kind)
    return None


def rounded(values: Any, kind: str) -> Leaf:
    """Values rounded to a type: how tasks make arrays of types that NumPy lacks."""
    own = kind_of(kind)
    array = np.asarray(values)
    return Leaf(from_float64(array, own) if own.is_float else array.astype(own.host), own)


def content(item: Leaf) -> bytes:
    """The bytes in memory, in row-major order."""
    return np.ascontiguousarray(to_bits(item.values, item.kind)).tobytes()


def from_content(raw: bytes | memoryview, kind: Kind, shape: tuple[int, ...]) -> Array:
    """The values that lie in memory. A bool whose byte is neither 0 nor 1 is true."""
    bits = np.frombuffer(raw, kind.storage if kind.bits > 1 else np.uint8).reshape(shape)
    return np.array(from_bits(bits.astype(bool) if kind.bits == 1 else bits, kind))


def places(shapes: list[tuple[Kind, tuple[int, ...]]]) -> tuple[list[Place], int]:
    """Places one behind the other, and the bytes of all."""
    found, at = [], 0
    for kind, shape in shapes:
        place = Place(kind.name, tuple(int(s) for s in shape), at)
        found.append(place)
        at += -(-place.size // ALIGNMENT) * ALIGNMENT
    return found, max(at, ALIGNMENT)


def flatten(tree: Any, leaves: list[Leaf]) -> Any:
    """A tree of arguments as JSON holds it; its arrays are appended to `leaves`. Raises `TaskError`."""
    if isinstance(tree, _SCALARS):
        return {"value": tree}
    if isinstance(tree, np.generic):
        return {"value": tree.item()}
    if (found := leaf(tree)) is not None:
        leaves.append(found)
        return {"leaf": len(leaves) - 1}
    if isinstance(tree, tuple | list):
        name = "tuple" if isinstance(tree, tuple) else "list"
        return {name: [flatten(item, leaves) for item in tree]}
    if isinstance(tree, dict) and all(isinstance(key, str) for key in tree):
        return {"dict": {key: flatten(item, leaves) for key, item in tree.items()}}
    raise TaskError(
        f"an argument of type {type(tree).__qualname__} cannot be given to another process: arrays, numbers, texts, "
        "and tuples, lists and dictionaries of them can"
    )


def unflatten(tree: Any, leaves: list[Any]) -> Any:
    """The tree again, with other arrays."""
    ((kind, item),) = tree.items()
    if kind == "value":
        return item
    if kind == "leaf":
        return leaves[item]
    if kind == "dict":
        return {key: unflatten(part, leaves) for key, part in item.items()}
    parts = [unflatten(part, leaves) for part in item]
    return tuple(parts) if kind == "tuple" else parts
