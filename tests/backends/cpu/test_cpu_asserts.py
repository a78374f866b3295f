"""Assertions in kernels, and Triton's checks for overflow, as Python exceptions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import debug_kernels as kernels
import numpy as np
import pytest
from cpu_scripts import Script
from triton.runtime import driver

from triton_porting_kit.errors import AssertionFailed, LaunchError

Array = Callable[..., Any]


def test_message_through_every_launcher(array: Array, launcher: str) -> None:
    values = np.arange(64, dtype=np.int32)
    x, out = array(values), array(np.zeros(64, np.int32))
    with pytest.raises(AssertionFailed) as caught:
        kernels.checked_copy[(4,)](x, out, 37, BLOCK=16, debug=True)
    expected = f"{kernels.__file__}:{kernels.line('copy')}, in checked_copy: too large"
    assert str(caught.value) == (
        "host CPU: launch: kernel 'checked_copy': a device-side assertion failed in program (2, 0, 0), element (5): "
        + expected
    )
    assert isinstance(caught.value, LaunchError)
    assert isinstance(caught.value, RuntimeError)  # as a failing assertion on a GPU is to Python
    kernels.checked_copy[(4,)](x, out, 64, BLOCK=16, debug=True)
    np.testing.assert_array_equal(out.numpy(), values)


def test_without_debug_the_code_is_the_same(array: Array) -> None:
    x, out = array(np.arange(16, dtype=np.int32)), array(np.zeros(16, np.int32))
    checked = kernels.checked_copy[(1,)](x, out, 3, BLOCK=16)
    np.testing.assert_array_equal(out.numpy(), np.arange(16))
    plain = kernels.plain_copy[(1,)](x, out, 3, BLOCK=16)
    assert checked.asm["llir"].replace("checked_copy", "plain_copy") == plain.asm["llir"]


def test_environment_turns_assertions_on(script: Script) -> None:
    source = """
from debug_kernels import checked_copy
x = array(np.arange(16, dtype=np.int32))
checked_copy[(1,)](x, x, 3, BLOCK=16)
"""
    assert script(source) == ""
    result = script.run(source, TRITON_DEBUG="1")
    assert result.returncode == 1
    assert "AssertionFailed: host CPU: launch: kernel 'checked_copy'" in result.stderr
    assert "element (3)" in result.stderr


def test_line_of_a_nested_function(array: Array) -> None:
    x = array(np.arange(16, dtype=np.int32))
    with pytest.raises(
        AssertionFailed, match=f"debug_kernels.py:{kernels.line('below')}, in below: too large"
    ):
        kernels.nested_check[(1,)](x, x, 15, BLOCK=16, debug=True)


@pytest.mark.parametrize("wrong", [0, 1, 6, 31, 32, 100, 127])
def test_first_failing_element(array: Array, wrong: int) -> None:
    values = np.zeros((4, 32), np.float32)
    values.ravel()[wrong] = -1
    values[-1, -1] = -1
    with pytest.raises(AssertionFailed, match=rf"element \({wrong // 32}, {wrong % 32}\)"):
        kernels.check_tile[(1,)](array(values), M=4, N=32, debug=True)
    wide = np.zeros((128, 1), np.float32)
    wide[wrong] = -1
    with pytest.raises(AssertionFailed, match=rf"element \({wrong}, 0\)"):
        kernels.check_tile[(1,)](array(wide), M=128, N=1, debug=True)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 64, 1024])
def test_masks(array: Array, size: int) -> None:
    values = np.arange(size, dtype=np.int32)
    values[size // 2 :] = -5
    x = array(values)
    kernels.masked_check[(1,)](x, size // 2, BLOCK=size, debug=True)
    with pytest.raises(AssertionFailed, match=rf"element \({size // 2}\).*: not in order"):
        kernels.masked_check[(1,)](x, size // 2 + 1, BLOCK=size, debug=True)


@pytest.mark.parametrize("grid", [(1,), (7,), (3, 5), (4, 3, 2), (1000, 3)])
def test_program_of_a_scalar_assertion(grid: tuple[int, ...]) -> None:
    x, y, z = (*grid, 1, 1)[:3]
    for first in {0, x * y * z // 2, x * y * z - 1}:
        program = rf"program \({first % x}, {first // x % y}, {first // (x * y)}\): .*: this one"
        with pytest.raises(AssertionFailed, match=program):
            kernels.check_programs[grid](first, debug=True)
    kernels.check_programs[grid](x * y * z, debug=True)


def test_one_of_many_failures_is_raised(array: Array) -> None:
    x = array(np.full(64 * 1024, 9, np.int32))
    for _ in range(20):
        with pytest.raises(AssertionFailed, match=r"program \(\d+, 0, 0\), element \(0\)"):
            kernels.checked_copy[(1024,)](x, x, 5, BLOCK=64, debug=True)


@pytest.mark.parametrize(
    "message",
    ["", 'a "quoted" \\ one', "100% of %s %n", "two\nlines\t", "größer als π \U0001f600", "x" * 5000],
)
def test_texts(array: Array, launcher: str, message: str) -> None:
    x = array(np.ones(1, np.int32))
    with pytest.raises(AssertionFailed) as caught:
        kernels.check_message[(1,)](x, MESSAGE=message, debug=True)
    where = f"debug_kernels.py:{kernels.line('message')}, in check_message"
    _, _, said = str(caught.value).partition(where)
    expected = f": {message}" if message else ""
    if len(message) < 1000 or launcher == "python":
        assert said == expected
    else:
        assert expected.startswith(said)
        assert len(said) > 500


def test_control_flow(array: Array) -> None:
    x, out = array([1.0, -2.0, 3.0, -4.0]), array([0.0])
    kernels.check_in_loop[(1,)](x, out, 1, debug=True)
    assert out.numpy()[0] == 1
    with pytest.raises(AssertionFailed, match=r"program \(0, 0, 0\): .*: negative"):
        kernels.check_in_loop[(1,)](x, out, 4, debug=True)
    x = array([-1.0, 2.0, -3.0, 4.0])
    kernels.check_in_loop[(1,)](x, out, 4, debug=True)
    assert out.numpy()[0] == 2


def test_what_an_assertion_guards_does_not_happen(array: Array) -> None:
    out = array(np.zeros(4, np.int32))
    with pytest.raises(AssertionFailed, match="out of bounds"):
        kernels.guarded_store[(1,)](out, 2**30, 4, debug=True)
    np.testing.assert_array_equal(out.numpy(), [7, 0, 0, 0])
    kernels.guarded_store[(1,)](out, 3, 4, debug=True)
    np.testing.assert_array_equal(out.numpy(), [7, 0, 0, 1])


def test_created_streams_raise_when_synchronised(array: Array, device: Any) -> None:
    values = np.arange(64, dtype=np.int32)
    x, out = array(values), array(np.zeros(64, np.int32))
    stream = device.create_stream()
    try:
        with driver.active.stream(stream):
            kernels.checked_copy[(4,)](x, out, 20, BLOCK=16, debug=True)
            kernels.checked_copy[(4,)](x, out, 100, BLOCK=16, debug=True)
        with pytest.raises(
            AssertionFailed, match=r"program \(1, 0, 0\), element \(4\).*1 operations behind it"
        ):
            device.synchronize(stream)
        with driver.active.stream(stream):
            kernels.checked_copy[(4,)](x, out, 100, BLOCK=16, debug=True)
        device.synchronize(stream)
        np.testing.assert_array_equal(out.numpy(), values)
    finally:
        device.destroy_stream(stream)


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
@pytest.mark.parametrize("operation", ["add", "sub", "mul"])
def test_overflow(array: Array, kind: str, operation: str) -> None:
    info = np.iinfo(kind)
    a, b = np.ones(32, kind), np.ones(32, kind)
    out = array(np.zeros(32, kind))
    a[9], b[9] = {"add": (info.max - 1, 1), "sub": (info.min + 1, 1), "mul": (info.max, 1)}[operation]
    kernels.arithmetic[(1,)](array(a), array(b), out, KIND=operation, BLOCK=32, debug=True)
    b[9] = 2
    text = rf"element \(9\): .*: int{info.bits} overflow detected for operation {operation}"
    launch: dict[str, Any] = {"KIND": operation, "BLOCK": 32, "debug": True}
    with pytest.raises(AssertionFailed, match=text):
        kernels.arithmetic[(1,)](array(a), array(b), out, **launch)
    kernels.arithmetic[(1,)](array(a), array(b), out, **launch, sanitize_overflow=False)


@pytest.mark.parametrize("kind", ["sum", "cumsum"])
def test_overflow_in_a_combine_function(array: Array, kind: str) -> None:
    values = np.ones(64, np.int32)
    out = array(np.zeros(64, np.int32))
    launch: dict[str, Any] = {"KIND": kind, "BLOCK": 64, "debug": True}
    kernels.arithmetic[(1,)](array(values), out, out, **launch)
    assert out.numpy()[-1] == 64
    values[5] = 2**31 - 1
    with pytest.raises(AssertionFailed, match=re.escape("program (0, 0, 0): ") + ".*int32 overflow"):
        kernels.arithmetic[(1,)](array(values), out, out, **launch)
