"""Pointers that a kernel makes of integers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.runtime import driver
from ttir_source import ttir_text

from triton_porting_kit.compiler import CpuTarget, cpu_pipeline, linalg_stage
from triton_porting_kit.errors import CompilationError
from triton_porting_kit.kernels.places import DevicePlace, Operand


@triton.jit
def doubled(table, n, KIND: tl.constexpr, B: tl.constexpr):
    """Of n numbers at the first address of the table, at the second; 7 behind them."""
    source = tl.load(table).to(tl.pointer_type(KIND))
    target = tl.load(table + 1).to(tl.pointer_type(KIND))
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        tl.store(target + at, tl.load(source + at, at < n) * 2, at < n)
    tl.store(target + n, tl.full((), 7, KIND))


@triton.jit
def filled(address, B: tl.constexpr):
    tl.store(address.to(tl.pointer_type(tl.int32)) + tl.arange(0, B), tl.full((B,), 1, tl.int32))


def form(kernel: object, signature: dict[str, str], convention: str, **constexprs: object) -> str:
    front = cpu_pipeline(CpuTarget.portable()).after("ttir").until("structured")
    structured = front.run(ttir_text(kernel, signature, **constexprs), {})["structured"]
    return str(linalg_stage(convention).run(structured, {}))


@pytest.mark.usefixtures("through_linalg")
@pytest.mark.parametrize(
    ("name", "kind"), [("int16", tl.int16), ("float32", tl.float32), ("int64", tl.int64)]
)
def test_addresses_are_read_from_memory(name: str, kind: tl.dtype) -> None:
    place = DevicePlace(driver.active.device)
    x, o = place.put(Operand(np.arange(20.0), name)), place.put(Operand(np.zeros(21), name))
    for given in ((x, o), (o, x)):  # the one that lies before the table, or behind it
        table = place.put(Operand(np.array([each.data_ptr() for each in given]), "int64"))
        doubled[(1,)](table, 20 if given[0] is x else 3, KIND=kind, B=8)
    assert place.get(o).tolist() == [*range(0, 40, 2), 7]
    assert place.get(x).tolist() == [0, 4, 8, 7, *range(4, 20)]


@pytest.mark.parametrize(("convention", "count"), [("iree", 3), ("iree-rocm", 3), ("ascend", 0)])
def test_they_are_distances_from_an_argument(convention: str, count: int) -> None:
    """In an executable of IREE's, whose compiler takes no casts, the binding is a memref of both element types."""
    text = form(doubled, {"table": "*i64", "n": "i32"}, convention, KIND=tl.float16, B=8)
    assert "llvm." not in re.sub(r'"[^"]*\.py"', "", text)
    assert "memref.extract_aligned_pointer_as_index" in text
    bound = re.findall(r'"stream.binding.subspan"\(.*-> (memref<\?x\w+>)', text)
    assert sorted(bound) == sorted(["memref<?xi64>", "memref<?xf16>"] if count else [])
    assert ("builtin.unrealized_conversion_cast" in text) == (not count)


def test_without_a_pointer_argument_there_is_no_memory_to_count_from() -> None:
    with pytest.raises(CompilationError, match="no pointer argument has elements of its size"):
        form(filled, {"address": "i64"}, "triton-shared", B=8)
