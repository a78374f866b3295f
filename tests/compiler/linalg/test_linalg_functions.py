"""Functions of libdevice in the form: arithmetic where their meaning is plain, else external functions."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from test_linalg_form import form, operations
from triton.language.extra import libdevice

from triton_porting_kit.compiler.linalg.arithmetic import EXPANDED
from triton_porting_kit.compiler.linalg.functions import parts, symbol
from triton_porting_kit.compiler.loops.arithmetic.library import FUNCTIONS, ROUTINES


@triton.jit
def classified(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(o + at, libdevice.isnan(tl.load(x + at)).to(tl.int32))


@triton.jit
def bessel(x, o, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(o + at, libdevice.cyl_bessel_i0(tl.load(x + at)))


@pytest.mark.parametrize("convention", ["triton-shared", "ascend"])
def test_plain_functions_are_arithmetic(convention: str) -> None:
    names = operations(form(classified, {"x": "*fp32", "o": "*i32"}, convention, B=64))
    assert "arith.cmpf" in names
    assert "func.call" not in names


def test_other_functions_are_external() -> None:
    text = form(bessel, {"x": "*fp32", "o": "*fp32"}, "triton-shared", B=64)
    assert "func.func private @tpk_scalar_cyl_bessel_i0__f32_f32(f32) -> f32" in text


@pytest.mark.parametrize("name", ["cyl_bessel_i0", "add_rz", "j0"])
def test_a_symbol_holds_its_name_and_types(name: str) -> None:
    assert parts(symbol(name, ["f32", "i64"], "bf16")) == (name, ["f32", "i64", "bf16"])


def test_each_function_is_expanded_or_has_a_routine() -> None:
    assert {name for name in FUNCTIONS if name not in EXPANDED} <= set(ROUTINES)
