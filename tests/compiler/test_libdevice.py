"""The table of libdevice's functions: that all who work from it agree."""

from __future__ import annotations

from libdevice_page import PAGE, page

from triton_porting_kit.compiler.libdevice import functions, symbol, symbols
from triton_porting_kit.compiler.loops.library import FUNCTIONS, OPERATIONS

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


def test_every_routine_that_is_called_is_there() -> None:
    """What the compiler calls, the host device has: the two only meet in an object file."""
    from triton_porting_kit.compiler.loops import library
    from triton_porting_kit.driver.host import _host

    called = {name for name in library.ROUTINES if f"tpk_math_{name}_f32" not in _host.functions}
    assert {name for name in called if f"tpk_math_{name}_f64" not in _host.functions} == set()
    had = {name.removeprefix("tpk_math_")[:-4] for name in _host.functions}
    assert had - set(library.ROUTINES) == set()
