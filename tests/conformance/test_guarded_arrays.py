"""Arrays of kernels: guard zones, poison, and arrays that are made beside others."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from conformance_helpers import memory

from triton_porting_kit.conformance.arrays import FILL, GUARD, GuardedArray, OutOfBounds, fence
from triton_porting_kit.conformance.context import Context, Failed, Session
from triton_porting_kit.conformance.types import KINDS, from_bits


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_guard_zones_poison_what_is_read_from_them(kind) -> None:  # type: ignore[no-untyped-def]
    zone = fence(kind)
    assert len(zone) == GUARD
    values = from_bits(zone.view(kind.storage), kind)
    if kind.is_float and kind.name != "fp8e4b15":  # which has no NaN
        assert np.isnan(values).all()
    elif not kind.is_float:
        assert (zone == FILL).all()


@pytest.mark.parametrize("name", ["fp32", "bf16", "i8", "fp64"])
def test_values_come_back(name: str) -> None:
    kind = KINDS[name]
    values = np.arange(12).reshape(3, 4).astype(kind.host)
    array = GuardedArray.of(memory(), kind, values)
    np.testing.assert_array_equal(array.read(), values)
    assert array.is_unchanged()
    assert array.stride() == (4, 1)


@pytest.mark.parametrize("offset", [-1, 12, -GUARD, 12 * 4 + GUARD - 1])
def test_a_write_beside_an_array_is_noticed(offset: int) -> None:
    own = memory()
    array = GuardedArray.of(own, KINDS["fp32"], np.zeros(12, np.float32))
    place = array.data_ptr() + (offset if offset != 12 else 48)
    own.kit_device.memcpy_htod(place, np.array([1], np.uint8))
    with pytest.raises(OutOfBounds, match="was written"):
        array.check_guards()


def _context() -> Context:
    return Context(Session("cpu", memory()), "kernels/a/b")


def test_arrays_made_beside_others_are_guarded_too() -> None:
    context = _context()
    first = context.array(np.zeros(4, np.float32), "fp32")
    made = GuardedArray.empty((3, 2), "float32", first.device)
    again = GuardedArray.empty((1,), "int64", made.device)
    context.device.memcpy_htod(again.data_ptr() + 8, np.array([1], np.uint8))
    with pytest.raises(Failed, match="0 bytes behind the end of an array of i64"):
        context.check_guards()


def test_arrays_go_with_their_check() -> None:
    context = _context()
    array = context.array(np.zeros(4, np.float32), "fp32")
    GuardedArray.empty((3, 2), "float32", array.device)
    watched = weakref.ref(array)
    gc.disable()
    try:
        del array, context
        assert watched() is None
    finally:
        gc.enable()
