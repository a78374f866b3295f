"""Tiles are turned where memory is contiguous along their first dimension, and kernels compute the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from ttir_source import ttir_text

from triton_porting_kit.compiler.structured import import_ttir
from triton_porting_kit.driver import DeviceArray


@triton.jit
def columns_kernel(X, W, OUT, LARGEST, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[:, None]
    total = tl.zeros((COLUMNS, ROWS), tl.float32)
    largest = tl.full((COLUMNS, ROWS), float("-inf"), tl.float32)
    for start in range(0, rows, ROWS):
        i = start + tl.arange(0, ROWS)[None, :]
        inside = (i < rows) & (j < columns)
        x = tl.load(X + i * columns + j, mask=inside, other=0.0)
        total += x * tl.load(W + i, mask=i < rows, other=0.0)
        largest = tl.where(inside, tl.maximum(largest, x), largest)
    place = tl.arange(0, COLUMNS) + tl.program_id(0) * COLUMNS
    tl.store(OUT + place, tl.sum(total, 1), mask=place < columns)
    tl.store(LARGEST + j, tl.max(largest, 1)[:, None], mask=j < columns)


@triton.jit
def rows_kernel(X, OUT, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    inside = (i < rows) & (j < columns)
    tl.store(OUT + i * columns + j, tl.load(X + i * columns + j, mask=inside) + 1, mask=inside)


@triton.jit
def product_kernel(X, OUT, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    x = tl.load(X + j * rows + i)
    tl.store(OUT + i + tl.arange(0, ROWS)[None, :] * rows, tl.dot(x, tl.trans(x)))


def structured(kernel: Any, **constants: int) -> str:
    pointers = [name for name in kernel.arg_names if name.isupper() and name not in constants]
    signature = dict.fromkeys(pointers, "*fp32") | dict.fromkeys(("rows", "columns"), "i32")
    return str(import_ttir(ttir_text(kernel, signature, **constants)))


def test_a_kernel_that_walks_down_columns_is_turned() -> None:
    text = structured(columns_kernel, ROWS=16, COLUMNS=64)
    assert "tensor<64x16xf32>" not in text
    assert re.search(r"tpk.reduce.*?axis = 0 : i32.*?tensor<16x64xf32>", text, re.DOTALL)


@pytest.mark.parametrize("kernel", [rows_kernel, product_kernel])
def test_other_kernels_are_left_as_they_are(kernel: Any) -> None:
    text = structured(kernel, ROWS=16, COLUMNS=32)
    assert "tensor<16x32xf32>" in text


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (16, 64), (37, 100), (64, 129), (5, 63)])
@pytest.mark.parametrize(("block_rows", "block_columns"), [(16, 64), (1, 128), (64, 4)])
@pytest.mark.usefixtures("cpu_backend")
def test_turned_kernels_compute_the_same(
    rows: int, columns: int, block_rows: int, block_columns: int
) -> None:
    from triton.runtime import driver

    device = driver.active.device
    generator = np.random.default_rng(0)
    x = generator.integers(-9, 10, (rows, columns)).astype(np.float32)
    w = generator.integers(-9, 10, rows).astype(np.float32)
    out, largest = (DeviceArray.empty(columns, "float32", device) for _ in range(2))
    columns_kernel[(triton.cdiv(columns, block_columns),)](
        *(DeviceArray.from_numpy(a, device) for a in (x, w)),
        out,
        largest,
        rows,
        columns,
        block_rows,
        block_columns,
    )
    np.testing.assert_array_equal(out.numpy(), w @ x)
    np.testing.assert_array_equal(largest.numpy(), x.max(0))
