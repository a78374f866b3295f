"""The first element that differs, by its type and place."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from replay_helpers import Recorder

from triton_porting_kit.replay import Difference, Manifest, read
from triton_porting_kit.replay.comparison import difference
from triton_porting_kit.replay.manifest import Slot

pytestmark = pytest.mark.xdist_group("replay")  # recorded programs are shared


@pytest.fixture
def manifest(recorder: Recorder) -> Manifest:
    return read(recorder("plain").launches[0]).manifest


def found(
    manifest: Manifest, type_: str, actual: bytes, expected: bytes, offset: int = 0
) -> Difference | None:
    slots = [Slot("p", type_, 0, 8, "0x0", 0, offset)]
    return difference(dataclasses.replace(manifest, slots=slots), 0, actual, expected)


@pytest.mark.parametrize(
    ("type_", "numpy", "one", "other", "ulp"),
    [
        ("*fp32", np.float32, 1.0, np.nextafter(np.float32(1), np.float32(2)), 1),
        ("*fp64", np.float64, 1.0, -1.0, 2 * 0x3FF0000000000000),
        ("*fp16", np.float16, 0.0, -0.0, 0),
        ("*bf16", np.uint16, 0x3F80, 0x3F83, 3),
        ("*fp8e5", np.uint8, 0x3C, 0x3E, 2),
        ("*fp32", np.float32, np.nan, 1.0, None),
        ("*i16", np.int16, 5, 9, None),
        ("**fp32", np.uint64, 5, 9, None),
    ],
)
def test_distances(
    manifest: Manifest, type_: str, numpy: type, one: object, other: object, ulp: int | None
) -> None:
    actual, expected = np.full(8, one, numpy), np.full(8, one, numpy)
    expected[5] = other
    difference = found(manifest, type_, actual.tobytes(), expected.tobytes())
    assert difference is not None
    assert difference.ulp == ulp
    if type_ != "**fp32":
        assert (difference.index, difference.elements, difference.total) == (5, 1, 8)


def test_what_is_equal_does_not_differ(manifest: Manifest) -> None:
    assert found(manifest, "*fp32", b"abcd", b"abcd") is None


def test_elements_count_from_the_parameter(manifest: Manifest) -> None:
    actual = np.zeros(12, np.int32)
    expected = actual.copy()
    expected[[1, 3]] = 7
    difference = found(manifest, "*i32", actual.tobytes(), expected.tobytes(), offset=16)
    assert difference is not None
    assert (difference.index, difference.byte, difference.elements) == (-3, 4, 2)
    assert str(difference) == (
        "buffer 0 (p: *i32): 2 of 12 elements differ; the first at [-3] (byte 4 of the buffer): 0 (0x00000000), "
        "recorded 7 (0x00000007)"
    )


def test_bytes_that_are_no_element(manifest: Manifest) -> None:
    difference = found(manifest, "*i32", b"\0\0\0\0\0", b"\0\0\0\0\1")
    assert difference is not None
    assert (difference.index, difference.total, difference.actual) == (4, 5, "0 (0x00)")


def test_the_parameter_in_front_names_the_place(manifest: Manifest, tmp_path: Path) -> None:
    slots = [Slot("a", "*i32", 0, 8, "0x0", 0, 0), Slot("b", "*fp16", 8, 8, "0x0", 0, 16)]
    expected = bytearray(32)
    expected[18] = 1
    difference_ = difference(dataclasses.replace(manifest, slots=slots), 0, bytes(32), bytes(expected))
    assert difference_ is not None
    assert (difference_.name, difference_.index) == ("b: *fp16", 1)
