"""Which dimensions of an operation's operands a dimension of its results goes along with.

If a rule gives operand n dimension k for dimension d of the results, then elements at position i along d depend on that
operand only at position i along k; on operands that a rule does not name, they do not depend along d at all. None: they
depend on other positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.compiler.dialect.operations import (
    ClampF,
    FpToFp,
    Function,
    Gather,
    Join,
    Load,
    Map,
    Range,
    Reduce,
    Scan,
)
from triton_porting_kit.compiler.dialect.schema import Trait
from triton_porting_kit.compiler.dialect.upstream import ELEMENTWISE, TRAITS

from .editing import nested, shape_of

Parts = dict[int, int]
"""The operands that are split, by number, and along which of their dimensions."""

EFFECTS = Trait.WRITES | Trait.TELLS
_TRAITS = {**TRAITS, "linalg.yield": Trait.TERMINATOR}


def traits_of(operation: Any) -> Trait:
    """What an operation does; everything, if it is not known."""
    return _TRAITS.get(operation.name, EFFECTS)


def parts_of(operation: Any, d: int) -> Parts | None:
    """The rule of an operation for dimension `d` of its results."""
    rule = _RULES.get(operation.name)
    return None if rule is None else rule(operation, d)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(shape_of(value) or ())


def _tensors(operation: Any, d: int) -> Parts:
    return {n: d for n, value in enumerate(operation.operands) if shape_of(value) is not None}


def _nothing(operation: Any, d: int) -> Parts:
    return {}


def _constant(operation: Any, d: int) -> Parts | None:
    return {} if operation.attributes["value"].is_splat else None


def _load(operation: Any, d: int) -> Parts | None:
    return None if Load(operation).volatile else _tensors(operation, d)


def _gather(operation: Any, d: int) -> Parts | None:
    return None if Gather(operation).volatile else _tensors(operation, d)


def _broadcast(operation: Any, d: int) -> Parts:
    added = list(operation.attributes["dimensions"])
    if d in added:
        return {1: d}
    return {0: d - sum(dimension < d for dimension in added), 1: d}


def _transpose(operation: Any, d: int) -> Parts:
    return {0: list(operation.attributes["permutation"])[d], 1: d}


def _expand(operation: Any, d: int) -> Parts | None:
    group = _group_of(operation, d)
    sizes, source = _shape(operation.results[0]), _shape(operation.operands[0])
    return {0: group} if group is not None and sizes[d] == source[group] else None


def _group_of(operation: Any, d: int) -> int | None:
    groups = [[int(n.value) for n in group] for group in operation.attributes["reassociation"]]
    return next((number for number, group in enumerate(groups) if d in group), None)


def _collapse(operation: Any, d: int) -> Parts | None:
    source, size = _shape(operation.operands[0]), _shape(operation.results[0])[d]
    return next(
        ({0: k} for k in range(len(source)) if _group_of(operation, k) == d and source[k] == size), None
    )


def _reduce(operation: Any, d: int) -> Parts:
    return _tensors(operation, d if d < Reduce(operation).axis else d + 1)


def _scan(operation: Any, d: int) -> Parts | None:
    return None if Scan(operation).axis == d else _tensors(operation, d)


def _map(operation: Any, d: int) -> Parts | None:
    blocks = [block for region in operation.regions for block in region.blocks]
    effects = any(traits_of(inner) & EFFECTS for block in blocks for inner in nested(block))
    return None if effects or Map(operation).pack != 1 else _tensors(operation, d)


def _join(operation: Any, d: int) -> Parts | None:
    return None if d == len(_shape(operation.results[0])) - 1 else _tensors(operation, d)


def _product(operation: Any, d: int) -> Parts:
    """Batches, rows of the first operand, and columns of the second one."""
    rank = len(_shape(operation.results[0]))
    if d == rank - 2:
        return {0: d, 2: d}
    return {1: d, 2: d} if d == rank - 1 else {0: d, 1: d, 2: d}


PRODUCTS = ("linalg.matmul", "linalg.batch_matmul")

_RULES: dict[str, Callable[[Any, int], Parts | None]] = {
    **dict.fromkeys(sorted(ELEMENTWISE), _tensors),
    **{cls.OPERATION_NAME: _tensors for cls in (Function, FpToFp, ClampF)},
    Map.OPERATION_NAME: _map,
    Join.OPERATION_NAME: _join,
    Range.OPERATION_NAME: _nothing,
    "tensor.splat": _nothing,
    "tensor.empty": _nothing,
    "arith.constant": _constant,
    "linalg.broadcast": _broadcast,
    "linalg.transpose": _transpose,
    "tensor.expand_shape": _expand,
    "tensor.collapse_shape": _collapse,
    Load.OPERATION_NAME: _load,
    Gather.OPERATION_NAME: _gather,
    Reduce.OPERATION_NAME: _reduce,
    Scan.OPERATION_NAME: _scan,
    **dict.fromkeys(PRODUCTS, _product),
}
