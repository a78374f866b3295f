"""Every kind of argument reaches the kernel with the value it had, through every launcher."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import cpu_kernels
import numpy as np
import pytest
from triton.tools.tensor_descriptor import TensorDescriptor

from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import GridError, SignatureError

Array = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("launcher")


@pytest.mark.parametrize("extreme", ["lowest", "highest", "one"])
def test_integers(extreme: str, array: Array) -> None:
    types = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
    infos = [np.iinfo(type_) for type_ in types]
    values = [{"lowest": int(i.min), "highest": int(i.max), "one": 1}[extreme] for i in infos]
    flag = extreme != "lowest"
    out = array(np.zeros(9, np.int64))
    cpu_kernels.integers[(1,)](out, *values, flag)
    found = [int(value) for value in out.numpy()]
    found[7] %= 1 << 64
    assert found == [*values, int(flag)]


@pytest.mark.parametrize("value", [1.0, -0.1, 3.0e4, float("inf"), float("nan")])
def test_floats(value: float, array: Array) -> None:
    out = array(np.zeros(4))
    cpu_kernels.floats[(1,)](out, value, value, value, value)
    bits = np.float32(value).view(np.uint32)
    bfloat = ((int(bits) + 0x7FFF + (int(bits) >> 16 & 1)) >> 16 << 16) & 0xFFFFFFFF
    expected = [
        float(np.float16(value)),
        value if value != value else float(np.uint32(bfloat).view(np.float32)),
        float(np.float32(value)),
        value,
    ]
    np.testing.assert_array_equal(out.numpy(), expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 16, -(2**31), 2**31 - 1), None),
        ((2**31, 2**63 - 1, -(2**63), 0), None),
        ((True, False, 1, 5), (1, 0, 1, 5)),
        ((2**63, 2**64 - 1, 0, 0), (-(2**63), -1, 0, 0)),
    ],
)
def test_specialised_integers(values: Any, expected: Any, array: Array) -> None:
    out = array(np.zeros(4, np.int64))
    cpu_kernels.scalars[(1,)](out, *values)
    assert tuple(out.numpy()) == (expected or values)


def test_plain_floats(array: Array) -> None:
    out = array(np.zeros(4, np.float64))
    cpu_kernels.scalars[(1,)](out, 0.1, 1e30, -0.0, 1)
    np.testing.assert_array_equal(out.numpy(), [np.float32(0.1), np.float32(1e30), -0.0, 1.0])


def test_none_and_constexpr(array: Array) -> None:
    out, x = array([0.0]), array([10.0])
    cpu_kernels.optional[(1,)](out, x)
    assert out.numpy() == 10
    cpu_kernels.optional[(1,)](out, x, 2, SCALE=5)
    assert out.numpy() == 20
    cpu_kernels.optional[(1,)](out, None, y=7)
    assert out.numpy() == 21
    cpu_kernels.optional[(1,)](out, None)
    assert out.numpy() == 0


Config = namedtuple("Config", ["scale", "inner"])


def test_tuples(array: Array) -> None:
    out, x = array(np.zeros(6)), array([5.0])
    cpu_kernels.nested[(1,)](out, (2, (3.5, x)), Config(-1, (1, None)))
    assert list(out.numpy()) == [2, 3.5, 5, -1, 1, 1]
    cpu_kernels.nested[(1,)](out, (1, (1.0, x)), Config(2.5, (2**40, 7)))
    assert list(out.numpy()) == [1, 1, 5, 2.5, 2**40, 2]


@pytest.mark.parametrize("library", ["kit", "torch"])
def test_tensor_descriptors(library: str, array: Array) -> None:
    values = np.arange(12 * 20, dtype=np.float32).reshape(12, 20)
    make: Any = array
    if library == "torch":
        make = pytest.importorskip("torch").from_numpy
    src, dst = make(values), make(np.zeros((8, 16), np.float32))
    for i, j in ((0, 0), (4, 8), (6, 10)):
        cpu_kernels.copy_tile[(1,)](
            TensorDescriptor(src, [12, 20], [20, 1], [8, 16]),
            TensorDescriptor(dst, [8, 16], [16, 1], [8, 16]),
            i,
            j,
        )
        expected = np.zeros((8, 16), np.float32)
        tile = values[i : i + 8, j : j + 16] * 2
        expected[: tile.shape[0], : tile.shape[1]] = tile
        np.testing.assert_array_equal(dst.numpy(), expected)


def test_descriptor_padding(array: Array) -> None:
    src, dst = array(np.ones((4, 16), np.float32)), array(np.zeros((8, 16), np.float32))
    cpu_kernels.copy_tile[(1,)](
        TensorDescriptor(src, [4, 16], [16, 1], [8, 16], padding="nan"),
        TensorDescriptor(dst, [8, 16], [16, 1], [8, 16]),
        0,
        0,
    )
    assert (dst.numpy()[:4] == 2).all()
    assert np.isnan(dst.numpy()[4:]).all()


@pytest.mark.parametrize(
    "grid", [(5,), (1, 1, 1), (3, 2), (2, 3, 4), (7, 1, 2), (1, 0, 4), (0,), [4], (np.int64(3),)]
)
def test_grids(grid: Any, array: Array) -> None:
    full = tuple(int(count) for count in (*grid, 1, 1)[:3])
    count = full[0] * full[1] * full[2]
    x = array(np.zeros(count + 1, np.int32))
    cpu_kernels.mark_programs[grid](x)
    expected = [
        1 + i + 10 * j + 100 * k for k in range(full[2]) for j in range(full[1]) for i in range(full[0])
    ]
    behind = full[0] + 1000 * full[1] + 1000000 * full[2] if count else 0
    assert list(x.numpy()) == [*expected, behind]


def test_a_grid_may_be_a_function_of_the_arguments(array: Array) -> None:
    x = array([0.0] * 100)
    seen = []

    def grid(args: dict[str, Any]) -> tuple[int]:
        seen.append(args["BLOCK"])
        return (-(-args["n"] // args["BLOCK"]),)

    cpu_kernels.add_constant[grid](x, 70, AMOUNT=2, BLOCK=16)
    assert seen == [16]
    assert (x.numpy() == [2.0] * 70 + [0.0] * 30).all()


@pytest.mark.parametrize("grid", [(2**31,), (1, -1), (1, 1, 2**40), (1.5,), ("4",), (2**31 - 1,) * 3])
def test_bad_grids(grid: Any, array: Array) -> None:
    x = array(np.zeros(2, np.int32))
    with pytest.raises(GridError, match="grid"):
        cpu_kernels.mark_programs[grid](x)
    assert not x.numpy().any()


def test_arguments_that_do_not_fit(array: Array, launcher: str) -> None:
    x = array([0.0] * 4)
    with pytest.raises(TypeError, match="argument"):
        cpu_kernels.add_constant[(1,)](x, AMOUNT=1, BLOCK=4)
    with pytest.raises(TypeError, match="argument"):
        cpu_kernels.add_constant[(1,)](x, 4, 1, 4, 5)
    with pytest.raises(KeyError, match="no_such_option"):
        cpu_kernels.add_constant[(1,)](x, 4, AMOUNT=1, BLOCK=4, no_such_option=3)
    kernel = cpu_kernels.integers.warmup(array(np.zeros(9, np.int64)), *range(1, 9), True, grid=(1,))
    out = array(np.zeros(9, np.int64))
    with pytest.raises(SignatureError, match=r"'a' \(i8\): 128 does not fit"):
        kernel[(1, 1, 1)](out, 128, 2, 3, 4, 5, 6, 7, 8, True)
    with pytest.raises(SignatureError, match=r"'e' \(u8\): expected an int, got float 1\.5"):
        kernel[(1, 1, 1)](out, 1, 2, 3, 4, 1.5, 6, 7, 8, True)
    with pytest.raises(SignatureError, match=r"'out' \(\*i64\): expected an address"):
        kernel[(1, 1, 1)]("text", 1, 2, 3, 4, 5, 6, 7, 8, True)
    with pytest.raises(SignatureError, match="takes 10 arguments"):
        kernel[(1, 1, 1)](out)


def test_a_compiled_kernel(array: Array) -> None:
    x = array([0.0] * 40)
    kernel = cpu_kernels.add_constant.warmup(x, 40, AMOUNT=4, BLOCK=32, grid=(1,))
    assert not x.numpy().any()
    kernel[(2, 1, 1)](x, 40, 4, 32)
    kernel[(1, 1, 1)](x, 8, 4, 32)
    assert (x.numpy() == [8.0] * 8 + [4.0] * 32).all()
    assert isinstance(x, DeviceArray)
