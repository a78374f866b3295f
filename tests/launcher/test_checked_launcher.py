"""The bounds of pointer arguments that go along with the arguments of kernels that check their accesses."""

from __future__ import annotations

import struct
import types
from typing import Any

import pytest
from launcher_helpers import Buffer, Descriptor, RecordingDevice, call

from triton_porting_kit.errors import SignatureError
from triton_porting_kit.launcher import CheckedLauncher, own_memory

UNKNOWN = (2**64 - 1, 0)


class Array(Buffer):
    """A view of an allocation."""

    def __init__(self, address: int, begin: int, size: int) -> None:
        super().__init__(address)
        self.allocation = begin, size


class Tensor(Buffer):
    """A tensor as torch has it."""

    def untyped_storage(self) -> Any:
        return types.SimpleNamespace(data_ptr=lambda: 0x4000, nbytes=lambda: 77)


def launched(signature: Any, *args: Any) -> bytes:
    device = RecordingDevice()
    source = types.SimpleNamespace(signature=signature, constants={})
    known = {0x8000: (0x7FF0, 64)}
    call(CheckedLauncher(source, None, device, known.get), *args)
    (launch,) = device.launches
    return launch.block


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (Array(0x1010, 0x1000, 0x100), (0x1000, 0x100)),
        (types.SimpleNamespace(base=Array(0x1010, 0x1000, 0x100), data_ptr=lambda: 0x1010), (0x1000, 0x100)),
        (Tensor(0x4010), (0x4000, 77)),
        (Buffer(0x8000), (0x7FF0, 64)),
        (0x8000, (0x7FF0, 64)),
        (Buffer(0x9000), UNKNOWN),
        (0x9000, UNKNOWN),
        (0, (0, 0)),
        (None, (0, 0)),
        (Buffer(0), (0, 0)),
    ],
    ids=[
        "array",
        "reinterpreted",
        "tensor",
        "allocated",
        "address",
        "foreign",
        "number",
        "null",
        "none",
        "empty",
    ],
)
def test_bounds_of(value: Any, bounds: tuple[int, int]) -> None:
    block = launched({"n": "i8", "p": "*fp32", "m": "i8"}, 5, value, 6)
    address = value.data_ptr() if hasattr(value, "data_ptr") else value or 0
    assert struct.unpack("<bxxxxxxxQbxxxxxxxQQ", block) == (5, address, 6, *bounds)


def test_in_the_order_of_the_pointers() -> None:
    """Also those in tuples and descriptors; what is no pointer has none."""
    a, b, c = (Array(begin, begin, size) for begin, size in ((0x1000, 1), (0x2000, 2), (0x3000, 3)))
    signature = {"a": "*i8", "pair": ["i64", "*fp16"], "tile": "tensordesc<fp32[4]>"}
    block = launched(signature, a, (7, b), Descriptor(c, [4], [1]))
    assert struct.unpack("<6Q", block[-48:]) == (0x1000, 1, 0x2000, 2, 0x3000, 3)


def test_what_is_no_argument_is_refused_as_ever() -> None:
    for args in ((), (1.5,), (Buffer("here"),), (2**64,), (-1,)):
        with pytest.raises(SignatureError):
            launched({"p": "*fp32"}, *args)


def test_values_that_know_nothing_have_no_memory_of_their_own() -> None:
    assert [own_memory(value) for value in (5, None, Buffer(16), object())] == [None] * 4
