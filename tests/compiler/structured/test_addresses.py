"""The structured form denotes exactly the addresses, masks and padding of the TTIR it came from."""

from __future__ import annotations

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from interpreter import Interpreter, assert_same_trace, is_same_trace, structured_trace
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
    structured = import_ttir(text, _CONTEXT, turns=False)  # elements in the same order
    note(text)
    note(str(structured))
    assert structured.operation.verify()
    assert "tt." not in str(structured)
    assert_same_trace(expected, structured_trace(structured, arguments, position))


_EXTREMES = st.sampled_from(
    [-(2**31), -(2**31) + 3, -(2**30), -1, 0, 1, 5, 2**16, 2**30, 2**31 - 4, 2**31 - 1]
)


@settings(max_examples=300, deadline=None, suppress_health_check=_QUIET)
@given(kernels(), _EXTREMES, _EXTREMES, _EXTREMES, st.sampled_from([0, 3, 2**29, 2**31 - 2]))
def test_random_kernels_wrap_around(kernel: tuple[str, bool], m: int, n: int, s: int, program: int) -> None:
    """Whatever the scalars are, but for an access that would touch something else in 64 bits.

    Of pointers that control flow carries and that then move by what is not affine, masks are not looked at.
    """
    text, nonnegative = kernel
    arguments = [1 << 40, 1 << 44, *((abs(x) % 2**31 if nonnegative else x) for x in (m, n, s))]
    position = (program, 0, 0)
    module = mlir.parse_module(text, _CONTEXT)
    expected = Interpreter(arguments, position).run(module)
    structured = import_ttir(text, _CONTEXT, turns=False)  # elements in the same order
    note(text)
    note(str(structured))
    found = structured_trace(structured, arguments, position)
    if not is_same_trace(expected, found):
        masks = "scf" not in text and "arith.select" not in text
        traces = [Interpreter(arguments, position, wraps, masks=masks).run(module) for wraps in (True, False)]
        assert not is_same_trace(*traces)
