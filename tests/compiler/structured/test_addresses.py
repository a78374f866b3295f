"""The structured form denotes exactly the addresses, masks and padding of the TTIR it came from."""

from __future__ import annotations

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from interpreter import Interpreter, assert_same_trace
from random_kernels import kernels

from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.toolchain import mlir

_CONTEXT = mlir.make_context()
_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=400, deadline=None, suppress_health_check=_QUIET)
@given(kernels(), st.integers(1, 9), st.integers(1, 9), st.integers(-4, 9), st.integers(0, 3))
def test_random_kernels_touch_the_same_addresses(
    kernel: tuple[str, bool], m: int, n: int, s: int, program: int
) -> None:
    text, nonnegative = kernel
    arguments = [1 << 20, 1 << 24, m, n, abs(s) if nonnegative else s]
    position = (program, 0, 0)
    expected = Interpreter(arguments, position).run(mlir.parse_module(text, _CONTEXT))
    structured = import_ttir(text, _CONTEXT)
    note(text)
    note(str(structured))
    assert structured.operation.verify()
    assert "tt." not in str(structured)
    assert_same_trace(expected, Interpreter(arguments, position).run(structured))
