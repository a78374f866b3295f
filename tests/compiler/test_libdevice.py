"""The table of libdevice's functions: that all who work from it agree."""

from __future__ import annotations

from libdevice_page import PAGE, c_signature, page

from triton_porting_kit.compiler.libdevice import functions, symbol, symbols
from triton_porting_kit.compiler.loops.arithmetic import library
from triton_porting_kit.compiler.loops.arithmetic.library import FUNCTIONS, OPERATIONS
from triton_porting_kit.driver.host import _host

BY_TYPE = {"abs": {"math.absf", "math.absi"}, "pow": {"math.powf", "math.fpowi"}}


def test_the_page_is_current() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "run `python tests/compiler/libdevice_page.py`"


def test_every_meaning_has_a_lowering() -> None:
    meanings = set(symbols().values())
    lowered = {
        *FUNCTIONS,
        *OPERATIONS,
        *(name for name, forms in BY_TYPE.items() if forms <= set(OPERATIONS)),
    }
    assert meanings - lowered == set()


def test_every_lowering_has_a_name() -> None:
    assert set(FUNCTIONS) - set(symbols().values()) == set()


def test_overloads_have_symbols_of_their_own_where_signs_matter() -> None:
    for row in functions().values():
        kinds = {overload.operands[0][0] for overload in row.overloads}
        for overload in row.overloads:
            unsigned = {"i", "u"} <= kinds and overload.operands[0][0] == "u"
            assert symbol(row, overload) == f"tpk.{'u' if unsigned else ''}{row.meaning}"


def test_routines_are_called_as_the_host_defines_them() -> None:
    """Compiler and host only meet in an object file. The C++ facts are made from its types."""
    called = {symbol: c_signature(overload) for symbol, overload in library.signatures().items()}
    assert {symbol: _host.signatures.get(symbol) for symbol in called} == called
    assert called["tpk_math_ilogb_f64"] == "int32_t(double)"
    assert called["tpk_math_ull2float_rz_f32"] == "float(uint64_t)"
    assert called["tpk_math_double2float_ru_f64"] == "float(double)"
    # Besides these, the host has in single precision what kernels have written out.
    more = {symbol.removeprefix("tpk_math_") for symbol in _host.signatures.keys() - called}
    assert more == {f"{name}_f32" for name, suffixes in library.ROUTINES.items() if suffixes == ("f64",)}


def test_every_routine_has_a_signature() -> None:
    assert {symbol.removeprefix("tpk_math_")[:-4] for symbol in library.signatures()} == {*library.ROUTINES}
