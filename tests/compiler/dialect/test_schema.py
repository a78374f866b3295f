"""The declarations of the dialect: views of operations, and that all who work from the table know all of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from triton_porting_kit.compiler.dialect import ELEMENTWISE, OPERATIONS, TRAITS, Op, Trait, having
from triton_porting_kit.compiler.dialect.operations import AtomicRmw, Histogram, Load, Print, Store
from triton_porting_kit.compiler.loops.arithmetic.library import OPERATIONS as EMITTED
from triton_porting_kit.compiler.loops.handlers import HANDLERS


def operation(cls: type[Op[Any]], operands: list[str], **attributes: Any) -> Any:
    """A stand-in for an operation, whose attributes are as MLIR's objects are read."""
    return SimpleNamespace(
        name=cls.OPERATION_NAME, operands=operands, results=["result"], attributes=attributes
    )


def test_operands_by_name() -> None:
    load = Load(
        operation(Load, list("pos0101m"), operandSegmentSizes=[1, 1, 1, 1, 1, 1, 1, 1, 0], wrap_dims=[0])
    )
    assert (load.base, load.offset, load.mask, load.other) == ("p", "o", "m", None)
    assert [load.strides, load.low, load.high] == [["s"], ["0"], ["1"]]
    assert (load.wrap_dims, load.volatile, load.sem) == ((0,), False, "")


def test_the_last_group_may_be_absent_without_sizes() -> None:
    assert Histogram(operation(Histogram, ["x"])).mask is None
    assert Histogram(operation(Histogram, ["x", "m"])).mask == "m"
    assert Print(operation(Print, ["a", "b"])).values == ["a", "b"]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([1, 1, 1], "groups"),
        ([1, 1, 2, 0], "4 operands|2 operands for `value`"),
        ([1, 1, 1, 2], "groups|`mask`"),
    ],
)
def test_operands_that_do_not_fit(sizes: list[int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AtomicRmw.sizes(operation(AtomicRmw, ["p", "o", "v", "m"], operandSegmentSizes=sizes))


def test_operands_are_put_in_order() -> None:
    given = {"value": "v", "offset": "o", "strides": ["s", "t"], "base": "p", "mask": None}
    assert Store.operands_of(given) == (["p", "o", "s", "t", "v"], [1, 1, 2, 0, 0, 0, 0, 0, 1])
    with pytest.raises(TypeError, match="no operands other"):
        Store.operands_of({"other": "x"})


def test_casting() -> None:
    store = operation(Store, [])
    assert Load.dyn_cast(store) is None
    assert Load.dyn_cast(None) is None
    assert isinstance(Store.dyn_cast(store), Store)
    assert (Store.isa(store), Load.isa(store), Load.isa(None)) == (True, False, False)


def test_a_required_attribute() -> None:
    with pytest.raises(KeyError, match=r"tpk\.atomic_rmw has no attribute kind"):
        _ = AtomicRmw(operation(AtomicRmw, [])).kind


def test_the_lowering_knows_all_operations() -> None:
    """Calls are read as what they call."""
    assert {*HANDLERS} == TRAITS.keys() - {"tpk.call"}
    assert {name for name in EMITTED if not name.startswith("tpk.")} == ELEMENTWISE


def test_traits_make_sense() -> None:
    writes, movable = having(Trait.WRITES), having(Trait.MOVABLE)
    assert not movable & (writes | having(Trait.READS) | having(Trait.TELLS))
    assert not having(Trait.DEFERRABLE) & writes
    assert movable <= having(Trait.DEFERRABLE)
    assert all(cls.meaning().endswith(".") for cls in OPERATIONS.values())
