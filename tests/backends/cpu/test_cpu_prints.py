"""What kernels print, in Triton's lines, on the process's standard output."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import debug_kernels as kernels
import numpy as np
import pytest
from cpu_scripts import Script
from triton.runtime import driver

Array = Callable[..., Any]
Capture = pytest.CaptureFixture[str]


def lines(capfd: Capture) -> list[str]:
    return capfd.readouterr().out.splitlines()


NUMBERS = {
    "bool": (False, True),
    "int8": (-128, 127), "int16": (-(2**15), 5), "int32": (-(2**31), 7), "int64": (-(2**63), 2**63 - 1),
    "uint8": (0, 255), "uint16": (0, 2**16 - 1), "uint32": (3, 2**32 - 1), "uint64": (0, 2**64 - 1),
}  # fmt: skip


@pytest.mark.parametrize("kind", NUMBERS)
def test_integers(array: Array, capfd: Capture, kind: str) -> None:
    x = array(np.array(NUMBERS[kind], kind))
    kernels.print_values[(1,)](x, BLOCK=2, HEX=False)
    values = [int(value) for value in NUMBERS[kind]]
    assert lines(capfd) == [f"pid (0, 0, 0) idx ({i}) x: {value}" for i, value in enumerate(values)]
    kernels.print_values[(1,)](x, BLOCK=2, HEX=True)
    bits = 1 if kind == "bool" else np.dtype(kind).itemsize * 8
    wrapped = [value % 2**bits for value in values]
    digits = max(bits // 4, 1)
    assert lines(capfd) == [f"pid (0, 0, 0) idx ({i}) x: 0x{v:0{digits}x}" for i, v in enumerate(wrapped)]


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_floats(array: Array, capfd: Capture, kind: str) -> None:
    values = np.array([1.5, -0.0, np.inf, -np.inf, -(2.0**-14), 3.0, 2.0**-20, -384.0])
    patterns = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    x = array(patterns, kind) if kind == "bfloat16" else array(values.astype(kind))
    kernels.print_values[(1,)](x, BLOCK=8, HEX=False)
    texts = [f"{value:f}" for value in values]
    assert lines(capfd) == [f"pid (0, 0, 0) idx ({i}) x: {text}" for i, text in enumerate(texts)]
    kernels.print_values[(1,)](x, BLOCK=8, HEX=True)
    shown = [float.fromhex(text.rpartition(" ")[2]) for text in lines(capfd)]
    np.testing.assert_array_equal(shown, values)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_8_bit_floats(array: Array, capfd: Capture, kind: str) -> None:
    values = np.array([1.5, 0.0, -6.0, 2.0**-9], np.float32)
    kernels.print_values[(1,)](array(values, kind), BLOCK=4, HEX=False)
    texts = [f"{value:f}" for value in values]
    assert lines(capfd) == [f"pid (0, 0, 0) idx ({i}) x: {text}" for i, text in enumerate(texts)]


def test_scalars_of_several_types(array: Array, capfd: Capture, launcher: str) -> None:
    x = array([0.0])
    kernels.print_scalars[(1,)](-3, 200, x)
    assert lines(capfd) == [
        "pid (0, 0, 0) idx () values: (operand 0) -3",
        "pid (0, 0, 0) idx () values: (operand 1) 200",
        f"pid (0, 0, 0) idx () values: (operand 2) 0x{x.data_ptr():016x}",
    ]


@pytest.mark.parametrize("warps", [1, 4])
def test_scalars_are_printed_by_each_warp(array: Array, capfd: Capture, warps: int) -> None:
    kernels.print_scalars[(1,)](-3, 200, array([0.0]), num_warps=warps)
    shown = lines(capfd)
    assert len(shown) == 3 * warps
    assert shown[:warps] == ["pid (0, 0, 0) idx () values: (operand 0) -3"] * warps


def test_pointers(array: Array, capfd: Capture) -> None:
    x = array([0.0] * 4)
    kernels.print_pointers[(1,)](x)
    assert lines(capfd) == [f"pid (0, 0, 0) idx ({i}) at: 0x{x.data_ptr() + 4 * i:016x}" for i in range(4)]


def test_texts_are_no_formats(capfd: Capture) -> None:
    kernels.print_text[(1,)]()
    assert lines(capfd) == [r'pid (0, 0, 0) 100% "sure" \ %s %n', "pid (0, 0, 0) short"]


def test_indices_of_a_tile(array: Array, capfd: Capture) -> None:
    kernels.print_tile[(1,)](array(np.arange(32, dtype=np.int32)))
    assert lines(capfd) == [f"pid (0, 0, 0) idx ({i // 16}, {i % 16:2}): {i}" for i in range(32)]


def test_masked_elements_have_their_fill_value(array: Array, capfd: Capture) -> None:
    kernels.print_masked[(1,)](array(np.arange(4, dtype=np.int32)), 2)
    assert [text.rpartition(" ")[2] for text in lines(capfd)] == ["0", "1", "-1", "-1"]


def test_order_is_the_programs(array: Array, capfd: Capture) -> None:
    kernels.print_between_stores[(1,)](array(np.zeros(2, np.int32)))
    assert [text.partition(") ")[2].partition(") ")[2] for text in lines(capfd)] == [
        "first: 1", "first: 1", "second: 2", "second: 2", "last: 1",
    ]  # fmt: skip


def test_lines_of_many_threads_are_whole(array: Array, device: Any, capfd: Capture) -> None:
    x = array([0.0])
    streams = [device.create_stream() for _ in range(3)]
    for stream in streams:
        with driver.active.stream(stream):
            kernels.print_programs[(100, 2)](x, BLOCK=16)
    for stream in streams:
        device.synchronize(stream)
        device.destroy_stream(stream)
    text = lines(capfd)
    assert len(text) == 3 * 200 * 16
    seen: dict[str, int] = {}
    for start in range(0, len(text), 16):
        match = re.fullmatch(r"pid \((\d+), [01], 0\) idx \( 0\) value: \d+", text[start])
        assert match, text[start]
        for i in range(16):  # the lines of one value are together
            head = text[start].partition(" idx")[0]
            assert text[start + i] == f"{head} idx ({i:2}) value: {int(match[1]) * 16 + i}"
        seen[head] = seen.get(head, 0) + 1
    assert len(seen) == 200
    assert set(seen.values()) == {3}


def test_lines_reach_a_pipe_in_order_with_flushed_python(script: Script) -> None:
    output = script("""
from debug_kernels import print_programs
print("before", flush=True)
print_programs[(2,)](array([0.0]), BLOCK=2)
print("after")
""", TPK_NUM_THREADS="1")  # fmt: skip
    assert output.splitlines() == [
        "before",
        *(f"pid ({p}, 0, 0) idx ({i}) value: {2 * p + i}" for p in range(2) for i in range(2)),
        "after",
    ]


def test_kernels_without_prints_do_not_name_the_routine(array: Array) -> None:
    x = array(np.zeros(16, np.int32))
    kernel = kernels.plain_copy[(1,)](x, x, 0, BLOCK=16)
    assert b"tpk_host_print" not in kernel.asm["obj"]
    assert kernel.metadata.scratch_bytes == 64  # what says which program runs, for reports of crashes
