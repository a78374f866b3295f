"""`Leaf`: an array that is sent to a candidate or received from it, and the serialization of argument trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import KINDS, Array, Kind, from_bits, to_bits

ALIGNMENT = 64
BY_DEVICE_NAME = {kind.device: kind for kind in KINDS.values()}
"""Element types by the names that NumPy, torch and devices use."""
_SCALARS = (bool, int, float, str, type(None))


class Leaf(NamedTuple):
    """An array with an element type; values are in the host type."""

    values: Array
    kind: Kind

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.values))

    @property
    def wide(self) -> Array:
        """The values for an oracle: floating-point values as float64."""
        return self.values.astype(np.float64) if self.kind.is_float else self.values


class Place(NamedTuple):
    """The position of an array in shared memory."""

    kind: str
    shape: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, item: Any) -> Place:
        """Create a place from its JSON form."""
        kind, shape, offset = item
        return cls(kind, tuple(shape), offset)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * KINDS[self.kind].storage.itemsize


def kind_of(name: Any) -> Kind:
    """Find an element type by the name that Triton, NumPy or torch uses. Raises `TaskError`."""
    plain = str(name).rpartition(".")[2]
    found = KINDS.get(plain) or BY_DEVICE_NAME.get(plain)
    if found is None:
        raise TaskError(f"no element type {name!r}; known are {', '.join(BY_DEVICE_NAME)}")
    return found


def leaf(value: Any) -> Leaf | None:
    """Convert a NumPy array or a torch tensor to a `Leaf`; None for anything else."""
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
    """Round values to a type. Tasks use this to create arrays of types that NumPy lacks."""
    own = kind_of(kind)
    array = np.asarray(values)
    return Leaf(from_float64(array, own) if own.is_float else array.astype(own.host), own)


def content(item: Leaf) -> bytes:
    """The bytes of an array in row-major order."""
    return np.ascontiguousarray(to_bits(item.values, item.kind)).tobytes()


def from_content(raw: bytes | memoryview, kind: Kind, shape: tuple[int, ...]) -> Array:
    """The values of an array from its bytes. A bool whose byte is not 0 is true."""
    bits = np.frombuffer(raw, kind.storage if kind.bits > 1 else np.uint8).reshape(shape)
    return np.array(from_bits(bits.astype(bool) if kind.bits == 1 else bits, kind))


def places(shapes: list[tuple[Kind, tuple[int, ...]]]) -> tuple[list[Place], int]:
    """Assign consecutive places to arrays. Returns the places and the total number of bytes."""
    found, at = [], 0
    for kind, shape in shapes:
        place = Place(kind.name, tuple(int(s) for s in shape), at)
        found.append(place)
        at += -(-place.size // ALIGNMENT) * ALIGNMENT
    return found, max(at, ALIGNMENT)


def flatten(tree: Any, leaves: list[Leaf]) -> Any:
    """Convert an argument tree to JSON types, and append its arrays to `leaves`. Raises `TaskError`."""
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
        f"an argument of type {type(tree).__qualname__} cannot be passed to another process; arrays, numbers, strings, "
        "and tuples, lists and dictionaries of them can"
    )


def unflatten(tree: Any, leaves: list[Any]) -> Any:
    """Rebuild an argument tree with these arrays."""
    ((kind, item),) = tree.items()
    if kind == "value":
        return item
    if kind == "leaf":
        return leaves[item]
    if kind == "dict":
        return {key: unflatten(part, leaves) for key, part in item.items()}
    parts = [unflatten(part, leaves) for part in item]
    return tuple(parts) if kind == "tuple" else parts
