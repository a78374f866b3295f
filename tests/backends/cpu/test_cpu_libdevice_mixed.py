"""libdevice's functions on operands of several types: which one type they become, as Triton's promotion has it."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import triton
import triton.language as tl
from libdevice_kernels import NUMPY, apply
from triton.language.extra import libdevice

from triton_porting_kit.backends.cpu.libdevice import common_type
from triton_porting_kit.compiler.libdevice import functions
from triton_porting_kit.driver import DeviceArray

COUNT = 300


def values(kind: str, seed: int) -> Any:
    """Numbers of a type, some of them too large for a type that they are not to become."""
    rng = np.random.default_rng(seed)
    if kind.startswith("fp"):
        return rng.uniform(0.5, 4, COUNT).astype(NUMPY[kind])
    numbers = rng.integers(1, 20, COUNT).astype(NUMPY[kind])
    numbers[::7] = np.iinfo(NUMPY[kind]).max
    return numbers


def high_half(a: Any, b: Any) -> Any:
    """Of the products of 32-bit integers."""
    return (a.astype(object) * b.astype(object) >> 32).astype(a.dtype)


def power(a: Any, b: Any) -> Any:
    with mpmath.workprec(200):
        exact = [mpmath.power(mpmath.mpf(float(x)), mpmath.mpf(float(y))) for x, y in zip(a, b, strict=True)]
        return np.array([float(min(x, mpmath.mpf(2) ** 1100)) for x in exact]).astype(a.dtype)


def lesser_wins(a: Any, b: Any) -> Any:
    return np.maximum(a - b, 0)


PROMOTED = [
    ("pow", ("fp32", "int64"), "fp32", power, 4),
    ("pow", ("int64", "fp32"), "fp32", power, 4),
    ("pow", ("fp32", "uint32"), "fp32", power, 4),
    ("pow", ("fp64", "int64"), "fp64", power, 4),
    ("pow", ("fp32", "fp64"), "fp64", power, 4),
    ("fmod", ("uint64", "fp32"), "fp32", np.fmod, 0),
    ("copysign", ("fp32", "int64"), "fp32", np.copysign, 0),
    ("fdim", ("int32", "fp64"), "fp64", lesser_wins, 0),
    ("mulhi", ("int32", "uint32"), "uint32", high_half, 0),
    ("mulhi", ("uint32", "int32"), "uint32", high_half, 0),
    ("mulhi", ("int64", "int32"), "int64", None, 0),
    ("hadd", ("uint32", "int32"), "uint32", lambda a, b: ((a.astype(np.uint64) + b) >> 1).astype(a.dtype), 0),
]  # fmt: skip
"""Function, operand types, the type that they become and the result has, what it is, and how many ulp it may be off."""


@pytest.mark.parametrize("scalar", [False, True], ids=["tiles", "scalars"])
@pytest.mark.parametrize(
    ("name", "kinds", "common", "oracle", "ulp"),
    PROMOTED,
    ids=lambda v: "-".join(v) if isinstance(v, tuple) else None,
)
def test_operands_become_one_type(
    device: Any, name: str, kinds: tuple[str, str], common: str, oracle: Any, ulp: int, scalar: bool
) -> None:
    operands = [values(kind, seed) for seed, kind in enumerate(kinds)]
    with np.errstate(all="ignore"):
        promoted = [operand.astype(NUMPY[common]) for operand in operands]
        if oracle is None:  # the upper 64 bits of 128
            expected = np.array([int(a) * int(b) >> 64 for a, b in zip(*promoted, strict=True)], np.int64)
        else:
            expected = oracle(*promoted)
    found = apply(device, f"libdevice.{name}(a, b)", operands, common, scalar=scalar)
    if ulp:
        finite = np.isfinite(expected)
        assert np.array_equal(found[~finite], expected[~finite])
        np.testing.assert_array_max_ulp(found[finite], expected[finite], ulp)
    else:
        np.testing.assert_array_equal(found, expected)


MANY = sorted(name for name, row in functions().items() if len(row.overloads[0].operands) > 1)


@pytest.mark.parametrize(
    "name", [name for name in MANY if functions()[name].overloads[-1].operands[:2] == ("fp64",) * 2]
)
def test_every_function_of_several_floats_takes_them_mixed(device: Any, name: str) -> None:
    """The result is that on operands that NumPy has converted before."""
    count = len(functions()[name].overloads[-1].operands)
    letters = "abcd"[:count]
    expression = f"libdevice.{name}({', '.join(letters)})"
    kinds = ["fp32", "fp64", "int64", "int32"][:count]
    operands = [
        values("fp32" if kind[0] == "i" else kind, seed).astype(NUMPY[kind])
        for seed, kind in enumerate(kinds)
    ]
    mixed = apply(device, expression, operands, "fp64")
    alike = apply(device, expression, [operand.astype(np.float64) for operand in operands], "fp64")
    np.testing.assert_array_equal(mixed, alike)


@triton.jit
def broadcast_kernel(X, Y, O, B: tl.constexpr):
    i = tl.arange(0, B)
    x, y = tl.load(X + i), tl.load(Y + i)
    tl.store(O + i[:, None] * B + i[None, :], libdevice.pow(x[:, None], y[None, :]))
    tl.store(O + B * B + i, libdevice.pow(x, 3.0) + libdevice.pow(2, x) + libdevice.fma(x, y, 1))


def test_shapes_and_numbers_in_the_kernel(device: Any) -> None:
    size = 8
    x, y = np.linspace(0.5, 2, size).astype(np.float32), np.arange(-3, size - 3)
    out = DeviceArray.from_numpy(np.zeros(size * (size + 1), np.float32), device)
    broadcast_kernel[(1,)](*(DeviceArray.from_numpy(v, device) for v in (x, y)), out, B=size)
    wide = x.astype(np.float64)
    expected = [*(wide[:, None] ** y[None, :]).ravel(), *(wide**3 + 2**wide + (wide * y + 1))]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_what_has_no_common_type_is_refused(device: Any) -> None:
    with pytest.raises(triton.CompilationError) as raised:
        apply(device, "libdevice.jn(a, b)", [values("int64", 0), values("fp32", 1)], "fp32")
    assert "libdevice.jn takes (int32, fp32; int32, fp64), not (int64, fp32)" in f"{raised.value.__cause__}"


def test_the_common_type_is_that_of_tritons_additions() -> None:
    from triton.language.semantic import TritonSemantic

    def common(*names: str) -> Any:
        return common_type(list(map(tl.dtype, names)), TritonSemantic.__new__(TritonSemantic))

    assert common("fp32", "int64") == "fp32"
    assert common("int32", "uint32", "int64") == "int64"
    assert common("fp16", "bf16") == "fp16"
    assert common("int8", "fp64", "fp16") == "fp64"
