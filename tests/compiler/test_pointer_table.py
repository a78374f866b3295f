"""The table of pointer parameters that every kernel object exports, read out of a loaded shared object."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from running import put
from triton.tools.tensor_descriptor import TensorDescriptor

from triton_porting_kit.binaries.elf import read_object
from triton_porting_kit.compiler import link_shared_object
from triton_porting_kit.launcher import ArgLayout


@triton.jit
def takes_scalars(a, b, c):
    for _ in range(a):
        tl.debug_barrier()


@triton.jit
def takes_pointers(flag, X, n, half, O, last: tl.constexpr):
    tl.store(O, tl.load(X) + n + flag + half + last)


@triton.jit
def takes_tuples(first, pairs, O):
    tl.store(O, tl.load(pairs[0][0]) + pairs[0][1] + first + tl.load(pairs[1]))


@triton.jit
def takes_descriptors(n, tile, O, other):
    tile.store([0, 0], other.load([0, 0]) + n)
    tl.store(O, n)


@triton.jit
def reads_nothing(X, n):
    pass


def x() -> Any:
    return put(np.arange(512, dtype=np.float32).reshape(16, 32), "fp32")


def described() -> Any:
    return TensorDescriptor.from_tensor(x(), [8, 16])


CASES = {
    "scalars": (takes_scalars, lambda: (3, 1 << 40, 7), 0),
    "pointers": (takes_pointers, lambda: (True, x(), 5, 2.5, x(), 3), 2),
    "tuples": (takes_tuples, lambda: (3, ((x(), 9), x()), x()), 3),
    "descriptors": (takes_descriptors, lambda: (3, described(), x(), described()), 3),
    "unused": (reads_nothing, lambda: (x(), 2), 1),
}


@pytest.mark.parametrize("case", CASES)
def test_the_table_says_where_pointers_lie(case: str, tmp_path: Path) -> None:
    kernel, arguments, count = CASES[case]
    compiled = kernel[(1,)](*arguments())
    path = tmp_path / "kernel.so"
    path.write_bytes(link_shared_object(compiled.asm["obj"], "kernel.so"))
    name = compiled.metadata.name
    library = ctypes.CDLL(str(path))
    layout = ArgLayout.from_source(compiled.src)
    expected = [slot.offset for slot in layout.slots if slot.type.startswith("*")]
    assert len(expected) == count
    table = (ctypes.c_int32 * (1 + count)).in_dll(library, f"{name}__pointers")
    assert list(table) == [count, *expected]
    assert ctypes.c_int32.in_dll(library, "tpk_host_abi_version").value == 3
    assert ctypes.c_int64.in_dll(library, f"{name}__scratch_bytes").value == compiled.metadata.scratch_bytes


def test_the_object_defines_what_the_abi_says() -> None:
    compiled = takes_pointers[(1,)](False, x(), 5, 2.5, x(), 3)
    name = compiled.metadata.name
    exported = {symbol.name for symbol in read_object(compiled.asm["obj"]).symbols if symbol.is_exported}
    tables = {f"{name}__{what}" for what in ("scratch_bytes", "pointers", "program")}
    assert exported == {name, *tables, "tpk_host_abi_version"}
