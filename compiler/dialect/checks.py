"""What the verifiers of several operations check: each function gives what is wrong, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .types import element_of, is_scalar, shape_of


def same_shape(name: str, value: Any, other: Any) -> Iterator[str]:
    """`value`, if there is one, has the shape of `other`."""
    if value is not None and shape_of(value) != shape_of(other):
        yield f"`{name}` has the shape {_said(value)} instead of {_said(other)}"


def same_type(name: str, value: Any, other: Any) -> Iterator[str]:
    """`value` has the shape and the elements of `other`."""
    yield from same_shape(name, value, other)
    if element_of(value) != element_of(other):
        yield f"`{name}` has elements of {element_of(value)} instead of {element_of(other)}"


def fill(other: Any, result: Any) -> Iterator[str]:
    """`other` of a load: a scalar, or a tensor of the result's shape."""
    if other is not None and element_of(other) != element_of(result):
        yield f"`other` is {element_of(other)}, but {element_of(result)} is loaded"
    if other is not None and not is_scalar(other):
        yield from same_shape("other", other, result)


def along(axis: int, shape: tuple[int, ...]) -> Iterator[str]:
    """`axis` is a dimension of `shape`."""
    if not 0 <= axis < len(shape):
        yield f"a tensor of {len(shape)} dimensions has no dimension {axis}"


def longer(source: Any, result: Any, dimension: int, times: int) -> Iterator[str]:
    """`result` has the shape of `source`, `times` longer along a dimension."""
    shape = shape_of(source) or ()
    yield from along(dimension, shape)
    expected = tuple(size * times if d == dimension else size for d, size in enumerate(shape))
    if shape_of(result) != expected:
        yield f"its result must have the shape {list(expected)}, not {_said(result)}"


def _said(value: Any) -> str:
    shape = shape_of(value)
    return "of a scalar" if shape is None else str(list(shape))
