"""Programs compute in the same floating-point environment on every thread, whatever the caller's is."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from float_environments import DOWNWARD, INEXACT, TOWARD_ZERO, UPWARD, environment, flags, state
from host_scripts import LAUNCH, python
from objects import kernel

from triton_porting_kit.driver.host import HostDevice

PROGRAMS = 1000
QUOTIENTS = [(1.0, 3.0), (2.0, 3.0), (1e-300, 1e10), (5e-324, 1.0), (-1.0, 1e-320)]
"""Inexact ones, a denormal result, and denormal operands."""


def _divide(device: HostDevice, a: float, b: float, stream: int = 0) -> Any:
    function = device.get_function(device.load_module(kernel("divide"), "divide"), "divide")
    address = device.memalloc(8 * PROGRAMS)
    device.launch(function, (PROGRAMS,), stream, struct.pack("Qdd", address, a, b))
    device.synchronize(stream)
    back = np.empty(PROGRAMS)
    device.memcpy_dtoh(back, address)
    device.memfree(address)
    return back


@pytest.mark.parametrize("rounding", [0, UPWARD, DOWNWARD, TOWARD_ZERO])
@pytest.mark.parametrize("flush", [False, True])
def test_results_do_not_depend_on_the_caller(device: HostDevice, rounding: int, flush: bool) -> None:
    expected = [a / b for a, b in QUOTIENTS]
    stream = device.create_stream()
    for (a, b), quotient in zip(QUOTIENTS, expected, strict=True):
        for queue in (0, stream):
            with environment(rounding, flush=flush):
                found = _divide(device, a, b, queue)
            assert (found.view(np.int64) == np.float64(quotient).view(np.int64)).all(), (a, b)
    device.destroy_stream(stream)


def test_threads_that_the_caller_has_started_are_no_different() -> None:
    """Threads of the pool and of streams begin with the environment of the thread that makes them."""
    script = """
from float_environments import UPWARD, environment
out = device.memalloc(8000); stream = device.create_stream()
divide = device.get_function(device.load_module(kernel("divide"), "divide"), "divide")
with environment(UPWARD, flush=True):
    for queue in (0, stream):
        device.launch(divide, (1000,), queue, struct.pack("Qdd", out, 1e-300, 3e10))
        device.synchronize(queue)
        back = bytearray(8000)
        device.memcpy_dtoh(back, out)
        found = set(struct.unpack("1000q", back))
        device.memset(out, 0, 8000)
        print(*sorted(found))
"""
    result = python(LAUNCH + script, TPK_NUM_THREADS="4")
    bits = struct.unpack("q", struct.pack("d", 1e-300 / 3e10))[0]
    assert result.stdout.split() == [str(bits)] * 2, result.stderr


def test_the_caller_keeps_its_environment_and_its_flags(device: HostDevice) -> None:
    with environment(UPWARD, flush=True):
        before = state()
        assert not flags()
        _divide(device, 1.0, 3.0)
        _divide(device, 1.0, 0.0)
        assert not flags()
        assert state() == before
    with environment():
        assert np.float64(1.0) / np.float64(3.0) > 0
        assert flags() & INEXACT  # the caller's own flags stay
        _divide(device, 4.0, 2.0)
        assert flags() & INEXACT


_FLUSHED = """
from float_environments import environment
out = device.memalloc(8000)
divide = device.get_function(device.load_module(kernel("divide"), "divide"), "divide")
for flush in (False, True):
    with environment(flush=flush):
        device.launch(divide, (1000,), 0, struct.pack("Qdd", out, 1e-300, 1e10))
    back = bytearray(8000)
    device.memcpy_dtoh(back, out)
    print(*set(struct.unpack("1000d", back)))
"""


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("", ["1e-310", "1e-310"]),
        ("keep", ["1e-310", "1e-310"]),
        ("flush", ["0.0", "0.0"]),
        ("caller", ["1e-310", "0.0"]),
    ],
)
def test_denormals_by_the_variable(word: str, found: list[str]) -> None:
    result = python(LAUNCH + _FLUSHED, TPK_DENORMALS=word, TPK_NUM_THREADS="4")
    assert result.stdout.split() == found, result.stderr


def test_a_word_that_is_none_is_refused() -> None:
    result = python(LAUNCH + "run()", TPK_DENORMALS="yes")
    assert "LaunchError: host CPU: launch: TPK_DENORMALS is 'yes'; set it to keep, to flush" in result.stderr
