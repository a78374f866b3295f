"""The line of an instruction: found by lowering a kernel again, which must come out as the same code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import put

from triton_porting_kit.backends.cpu.compiler import CPUBackend
from triton_porting_kit.compiler import crash_location, pointer_arguments
from triton_porting_kit.compiler.crashes import code_of
from triton_porting_kit.kernels import cases
from triton_porting_kit.kernels.matmul import matmul_kernel
from triton_porting_kit.kernels.places import DevicePlace
from triton_porting_kit.kernels.softmax import softmax_kernel


@triton.jit
def three_lines(first, count, second):
    # Four elements fit a register of every CPU: a loop over the tile would have the store's line.
    value = tl.load(first + tl.arange(0, 4))
    total = value + tl.load(second + tl.arange(0, 4))  # which one instruction loads and adds
    tl.store(first + tl.arange(0, 4), total)


def lines(compiled: Any, **changes: Any) -> list[int | None]:
    """The line of every third byte of a kernel's code."""
    options = CPUBackend.lowering_options(compiled.metadata._asdict())
    binary, name = compiled.asm["obj"], compiled.metadata.name
    size = changes.pop("size", len(code_of(binary, name)))
    found = []
    for offset in range(0, len(code_of(binary, name)), 3):
        place = crash_location(
            compiled.asm["structured"], binary, name, size, offset, **{**options, **changes}
        )
        found.append(None if place is None else place.line)
    return found


def test_each_access_has_its_line() -> None:
    compiled = three_lines[(1,)](
        put(np.zeros(16, np.float32), "fp32"), 5, put(np.ones(16, np.float32), "fp32")
    )
    first = three_lines.fn.__code__.co_firstlineno + 3
    found = [line for line in lines(compiled) if line is not None]
    assert list(dict.fromkeys(found)) == [first, first + 1, first + 2]
    assert pointer_arguments(compiled.asm["structured"]) == ["first", "second"]
    assert set(lines(compiled, size=1)) == {None}  # another kernel was loaded
    assert set(lines(compiled, notes_program=False)) == {None}  # other code comes out


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        (matmul_kernel, cases.matmul_case(64, 512, 64, "bfloat16")),
        (softmax_kernel, cases.softmax_case(17, 781, "float32")),
    ],
    ids=["matmul", "softmax"],
)
def test_line_tables_do_not_change_code(kernel: Any, case: Any) -> None:
    """There are lines only where the same code came out."""
    from triton.runtime import driver

    place = DevicePlace(driver.active.device)
    kernel.device_caches.clear()
    case.launch([place.put(operand) for operand in case.operands()])
    (cache,) = (entry[0] for entry in kernel.device_caches.values())
    (compiled,) = cache.values()
    options = CPUBackend.lowering_options(compiled.metadata._asdict())
    code = code_of(compiled.asm["obj"], compiled.metadata.name)
    found = {
        crash_location(
            compiled.asm["structured"],
            compiled.asm["obj"],
            compiled.metadata.name,
            len(code),
            offset,
            **options,
        )
        for offset in range(0, len(code), len(code) // 8)
    }
    assert len(found - {None}) >= 2
