"""The packed block: against ctypes' idea of the same structure, and as JSON."""

from __future__ import annotations

import ctypes
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launcher_helpers import RecordingDevice, Strategy, call

from triton_porting_kit.errors import SignatureError
from triton_porting_kit.launcher import ArgLayout, Signature

CTYPES: dict[str, Any] = {
    "*fp32": ctypes.c_uint64,
    "i1": ctypes.c_uint8,
    "u1": ctypes.c_uint8,
    **{f"i{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
    "fp16": ctypes.c_uint16,
    "bf16": ctypes.c_uint16,
    "fp32": ctypes.c_float,
    "f32": ctypes.c_float,
    "fp64": ctypes.c_double,
}


def value_of(type_: str) -> st.SearchStrategy[Any]:
    if type_ in ("i1", "u1"):
        return st.booleans()
    if type_ in ("fp16", "bf16"):
        return st.sampled_from([0.0, -1.0, 1.5, math.inf, -0.0])
    if type_ in ("fp32", "f32"):
        return st.floats(width=32, allow_nan=False)
    if type_ == "fp64":
        return st.floats(allow_nan=False)
    bits = 64 if type_.startswith("*") else int(type_[1:])
    if type_.startswith("i"):
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.integers(0, 2**bits - 1)


arguments = st.lists(
    st.sampled_from(sorted(CTYPES)).flatmap(lambda t: st.tuples(st.just(t), value_of(t))), max_size=40
)
HALF = {0.0: (0, 0), -1.0: (0xBC00, 0xBF80), 1.5: (0x3E00, 0x3FC0), math.inf: (0x7C00, 0x7F80)}


def structure(pairs: list[tuple[str, Any]]) -> ctypes.Structure:
    fields = [(f"f{i}", CTYPES[type_]) for i, (type_, _) in enumerate(pairs)]
    block = type("Block", (ctypes.Structure,), {"_fields_": fields})()
    for i, (type_, value) in enumerate(pairs):
        if type_ in ("fp16", "bf16"):
            value = 0x8000 if math.copysign(1, value) < 0 and value == 0 else HALF[value][type_ == "bf16"]
        setattr(block, f"f{i}", value)
    return block


@given(arguments)
def test_block_is_the_c_structure(pairs: list[tuple[str, Any]]) -> None:
    layout = ArgLayout.from_signature(Signature.from_types([type_ for type_, _ in pairs]))
    expected = structure(pairs)
    for i, slot in enumerate(layout.slots):
        assert slot.offset == getattr(type(expected), f"f{i}").offset
        assert slot.offset % slot.alignment == 0
        assert slot.size == slot.alignment == ctypes.sizeof(CTYPES[slot.type])
    ends = [slot.offset + slot.size for slot in layout.slots]
    assert all(end <= slot.offset for end, slot in zip(ends, layout.slots[1:], strict=False))
    assert layout.size % 8 == 0
    assert 0 <= layout.size - max(ends, default=0) < 8
    packed = layout.pack([value for _, value in pairs])
    assert packed == bytes(expected).ljust(layout.size, b"\0")


@settings(max_examples=50, deadline=None)
@given(arguments)
def test_native_routine_packs_what_the_layout_packs(pairs: list[tuple[str, Any]]) -> None:
    types, values = [type_ for type_, _ in pairs], [value for _, value in pairs]
    device = RecordingDevice()
    call(Strategy("packed").make(device, {f"a{i}": type_ for i, type_ in enumerate(types)}), *values)
    assert device.launches[0].block == ArgLayout.from_signature(Signature.from_types(types)).pack(values)


@given(st.floats())
def test_native_routine_rounds_as_the_layout_does(value: float) -> None:
    types = {"h": "fp16", "b": "bf16", "f": "fp32", "d": "fp64"}
    device = RecordingDevice()
    call(Strategy("packed").make(device, types), *[value] * 4)
    assert device.launches[0].block == ArgLayout.from_signature(Signature.from_types(types)).pack([value] * 4)


def test_no_arguments_make_an_empty_block() -> None:
    layout = ArgLayout.from_signature(Signature.from_types({}))
    assert (layout.size, layout.alignment, layout.pack([])) == (0, 8, b"")


def test_pack_values_takes_flat_values() -> None:
    layout = ArgLayout.from_signature(Signature.from_types({"t": ("i32", "constexpr", "i64")}))
    assert layout.pack_values([1, 2]) == layout.pack([(1, "any", 2)])
    with pytest.raises(SignatureError, match="2 parameters, got 3 values"):
        layout.pack_values([1, 2, 3])


def test_survives_json() -> None:
    signature = Signature.from_types({"x": "*fp32", "t": ("i32", "tensordesc<i8[4]>"), "N": "constexpr"})
    layout = ArgLayout.from_signature(signature, {"scratch": "*i8", "rank": "i32"})
    data = json.loads(json.dumps(layout.to_dict()))
    assert ArgLayout.from_dict(data) == layout
    assert layout.hidden[0].offset == 56
    data["slots"][1][2] += 4
    with pytest.raises(SignatureError, match="compile the kernel again"):
        ArgLayout.from_dict(data)
