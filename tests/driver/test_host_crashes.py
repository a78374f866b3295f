"""The report of a kernel that crashes where no backend explains it, or where one does."""

from __future__ import annotations

import platform
import signal

import pytest
from host_scripts import python

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="other CPUs raise other signals, or divide by zero"
)

SCRIPT = """
import os, struct, sys
from objects import kernel
from triton_porting_kit.driver.host import HostDevice
device = HostDevice()
{before}
function = device.get_function(device.load_module(kernel({kind!r}), {kind!r}), {kind!r})
device.launch(function, {grid}, 0, struct.pack("q", {argument}))
"""


def crash(kind: str, grid: tuple[int, ...], argument: int, number: int, before: str = "") -> list[str]:
    """The lines that the process leaves, which ends by a signal."""
    source = SCRIPT.format(kind=kind, grid=grid, argument=argument, before=before)
    result = python(source, TPK_NUM_THREADS="1")
    assert result.returncode == -number, result.stderr
    return [line for line in result.stderr.splitlines() if line]


def test_a_kernel_that_notes_no_programs_crashes_in_one_of_some() -> None:
    (line,) = crash("trap", (40, 5), 3, signal.SIGILL)
    # A thread runs one program first, to learn how long it takes, and then eight.
    assert line == (
        "triton_porting_kit: kernel 'trap' crashed in one of the programs (1, 0, 0) to (8, 0, 0) of grid (40, 5, 1): "
        "SIGILL, an instruction that this CPU does not have"
    )


def test_explanation_is_written_below() -> None:
    """By the command that the device was given, with the numbers that it gets."""
    before = """
text = "print('  explained', *sys.argv[1:])"
device.explain_crashes("divide_integers", [sys.executable, "-I", "-c", "import sys; " + text, "it"])
"""
    first, second = crash("divide_integers", (1,), 0, signal.SIGFPE, before)
    assert first == (
        "triton_porting_kit: kernel 'divide_integers' crashed in program (0, 0, 0) of grid (1, 1, 1): SIGFPE, as after an integer "
        "division by zero"
    )
    said, what, *numbers = second.split()
    size, offset, address = (int(number, 16) for number in numbers)
    assert (said, what, address) == ("explained", "it", 0)
    assert 0 < offset < size


def test_explanation_that_cannot_be_had_is_left_out() -> None:
    before = "device.explain_crashes('divide_integers', ['/nowhere/to/be/found'])"
    (line,) = crash("divide_integers", (1,), 0, signal.SIGFPE, before)
    assert line.startswith("triton_porting_kit: kernel 'divide_integers' crashed in program (0, 0, 0)")
