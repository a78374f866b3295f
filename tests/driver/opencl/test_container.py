"""The container of OpenCL C: what is packed is unpacked, and damage is found."""

from __future__ import annotations

import pytest

from triton_porting_kit.driver.opencl import Container
from triton_porting_kit.errors import InvalidModule

CONTAINER = Container(
    "k", "tpk_k", 128, (0, 16), "gpu", "1.2", "__kernel void tpk_k() {} // é", b"\x00\x01binary"
)


def test_a_container_comes_back() -> None:
    assert Container.unpack(CONTAINER.pack()) == CONTAINER


@pytest.mark.parametrize("position", [0, 8, 12, 40, -1, -10])
def test_a_changed_byte_is_found(position: int) -> None:
    data = bytearray(CONTAINER.pack())
    data[position] ^= 0xFF
    with pytest.raises(InvalidModule):
        Container.unpack(bytes(data), "k")


@pytest.mark.parametrize("length", [0, 7, 8, 11, 60, -1])
def test_a_shorter_one_is_found(length: int) -> None:
    with pytest.raises(InvalidModule, match="'mine'"):
        Container.unpack(CONTAINER.pack()[:length], "mine")
