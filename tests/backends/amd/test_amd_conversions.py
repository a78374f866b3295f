"""Conversions that Triton does not lower for AMD's GPUs compile, as others that are right.

No GPU is here: the TTIR that this backend makes of a conversion is run by the CPU's backend instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import permutations, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import triton
from amd_compiling import compiled, source
from float_formats import FORMATS, around, decode, encode

from triton_porting_kit.backends.amd.conversions import by_way_of_f32
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.toolchain import compat

Result = TypeVar("Result")

SMALL = ("fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16")
LACKING = [*permutations(SMALL, 2), *product(SMALL, ["fp64"]), *product(["fp64"], SMALL)]
ALSO = [*product(SMALL, ["bf16"]), *product(["bf16"], SMALL)]


def arguments(types: tuple[str, str], block: int = 256) -> Any:
    return {"x": f"*{types[0]}", "out": f"*{types[1]}"}, {"BLOCK": block}


def apart(function: Callable[..., Result], *values: Any) -> Result:
    """A call in a new process: Triton 3.6 goes on with the ways to convert of the first architecture of a process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(function, *values).result()


def not_compiled(arch: str) -> list[tuple[str, str]]:
    return [
        types
        for types in LACKING + ALSO
        if not compiled("convert", arch, arguments=arguments(types)).asm["hsaco"]
    ]


def ttir(types: tuple[str, str], arch: str) -> str:
    return str(compiled("convert", arch, arguments=arguments(types)).asm["ttir"])


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx1100"])
def test_all_conversions_compile(arch: str) -> None:
    assert apart(not_compiled, arch) == []


@pytest.mark.parametrize(
    ("types", "arch", "rewritten"),
    [
        (("fp8e5", "fp32"), "gfx942", False),
        (("bf16", "fp8e5b16"), "gfx942", False),
        (("bf16", "fp8e5"), "gfx90a", False),
        # LLVM ends the process over what older releases make of it.
        (("bf16", "fp8e5b16"), "gfx90a", compat.release() < (3, 8)),
    ],
)
def test_what_triton_lowers_is_left_to_it(types: tuple[str, str], arch: str, rewritten: bool) -> None:
    text = apart(ttir, types, arch)
    assert len(re.findall(r"\b(?:tt\.fp_to_fp|arith\.extf|arith\.truncf)\b", text)) == (2 if rewritten else 1)


@pytest.fixture
def by_cpu(cpu_backend: None, tmp_path: Path) -> Any:
    """Convert the elements of an array, by a kernel that was rewritten for an architecture."""

    def convert(types: tuple[str, str], values: Any, result: Any, arch: str) -> Any:
        count = len(values)
        block = triton.next_power_of_2(count)
        active = triton.runtime.driver.active
        original = triton.compile(
            source("convert", arguments(types, block)), target=active.get_current_target()
        )
        text = by_way_of_f32(original.asm["ttir"], arch)
        assert text != original.asm["ttir"]
        path = tmp_path / f"convert-{'-'.join(types)}.ttir"
        path.write_text(text)
        padded = np.zeros(block, values.dtype)
        padded[:count] = values
        out = DeviceArray.from_numpy(np.zeros(block, result), active.device)
        triton.compile(str(path))[(1, 1, 1)](DeviceArray.from_numpy(padded, active.device), out)
        return out.numpy()[:count]

    return convert


@pytest.mark.parametrize("types", LACKING, ids="-".join)
def test_they_are_right(types: tuple[str, str], by_cpu: Any) -> None:
    from_, to = (FORMATS[name] for name in types)
    values = around(to, np.float64) if types[0] == "fp64" else np.arange(256).astype(np.uint8)
    numbers = decode(values, from_)
    got = by_cpu(types, values, to.patterns, "gfx942")
    expected = encode(numbers, to)
    np.testing.assert_array_equal(decode(got, to), decode(expected, to))
    number = ~np.isnan(numbers)
    np.testing.assert_array_equal(got[number], expected[number])
