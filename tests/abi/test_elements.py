"""The table of element types, against an independent one and against what others say of the same types."""

from __future__ import annotations

import ctypes
import re
import struct
from pathlib import Path

import float_formats
import numpy as np
import pytest
import triton.language as tl

from triton_porting_kit.abi.elements import ELEMENTS, MICROSCALING, OF_MLIR, PARAMETERS, ElementType
from triton_porting_kit.compiler.loops.arithmetic import minifloats
from triton_porting_kit.compiler.loops.ir import element_types
from triton_porting_kit.compiler.structured.types import element_bits
from triton_porting_kit.conformance.types import KINDS
from triton_porting_kit.driver import dtypes, host
from triton_porting_kit.launcher.types import scalar_type

FLOATS = [element for element in ELEMENTS.values() if element.form is not None]
SMALL = [element for element in FLOATS if element.bits <= 16]


@pytest.mark.parametrize("element", FLOATS, ids=lambda element: element.name)
def test_formats_are_those_of_the_oracle(element: ElementType) -> None:
    expected = float_formats.FORMATS[element.name]
    form = element.form
    assert form is not None
    assert (form.exponent, form.mantissa, form.bias) == (expected.exponent, expected.mantissa, expected.bias)
    assert form.special.name.lower() == expected.special
    assert element.bits == expected.bits == 1 + form.exponent + form.mantissa


@pytest.mark.parametrize("element", SMALL, ids=lambda element: element.name)
def test_every_pattern_is_the_number_of_the_oracle(element: ElementType) -> None:
    form = float_formats.FORMATS[element.name]
    patterns = np.arange(1 << element.bits).astype(form.patterns)
    expected = float_formats.decode(patterns, form)
    assert element.form is not None
    found = np.array(element.form.values)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
    assert found[element.form.largest] == expected[np.isfinite(expected)].max()
    assert element.form.unit == expected[expected > 0].min()
    assert (
        2.0**element.form.largest_exponent
        <= found[element.form.largest]
        < 2.0 ** (element.form.largest_exponent + 1)
    )


@pytest.mark.parametrize("element", [*ELEMENTS.values()], ids=lambda element: element.name)
def test_all_packages_have_every_type_from_the_table(element: ElementType) -> None:
    assert KINDS[element.name].bits == element.bits
    dtype = dtypes.ALL[element.array]
    assert dtype.itemsize == element.size
    assert dtype.is_floating_point == (element.form is not None)
    assert element_types.byte_size(element.mlir) == element.size
    assert element_bits(element.mlir) == element.bits
    if not element.is_minifloat:
        assert scalar_type(element.name, "x").size == element.size


@pytest.mark.parametrize("element", [*ELEMENTS.values()], ids=lambda element: element.name)
def test_triton_has_the_type_under_this_name(element: ElementType) -> None:
    kind = tl.dtype(
        element.name.replace("i", "int").replace("u", "uint") if element.form is None else element.name
    )
    assert kind.primitive_bitwidth == element.bits
    assert kind.is_floating() == (element.form is not None)


def test_the_host_prints_every_type_of_a_parameter() -> None:
    """Its table of texts, which `tpk_host_print` gets, where integers keep their sign."""
    source = (Path(host.__file__).parent / "native" / "print.cpp").read_text()
    printed = set(re.findall(r'^ +\{"(\w+)", print', source, re.MULTILINE))
    assert printed == {e.name if e.form is None else e.mlir for e in PARAMETERS.values()} | {"ptr"}


@pytest.mark.parametrize("name", PARAMETERS)
def test_cpp_and_struct_have_its_size(name: str) -> None:
    element = PARAMETERS[name]
    types = {"float": ctypes.c_float, "double": ctypes.c_double}
    kind = types.get(element.cpp) or getattr(
        ctypes, "c_" + element.cpp.removeprefix("std::").removesuffix("_t")
    )
    assert ctypes.sizeof(kind) == struct.calcsize("<" + element.packed) == element.size


def test_names_of_mlir_are_those_of_integers_with_a_sign() -> None:
    assert {OF_MLIR[name].name for name in ("i1", "i8", "i16", "i32", "i64")} == {
        "i1",
        "i8",
        "i16",
        "i32",
        "i64",
    }
    assert OF_MLIR["f8E4M3FN"].array == "float8_e4m3fn"
    assert {*minifloats.FORMATS} == {*element_types.FLOAT8, "f4E2M1FN"}
    assert [*MICROSCALING] == ["f8E8M0FNU", "f4E2M1FN"]


def test_elements_of_four_bits() -> None:
    form = MICROSCALING["f4E2M1FN"]
    assert form is not None
    assert form.values[:8] == (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
    assert (form.largest, form.nan, form.infinity) == (7, None, None)
