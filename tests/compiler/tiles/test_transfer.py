"""What accesses become, by the operations that are left. What they compute is tried by ``test_tiles_suite.py``."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from triton_porting_kit import chips
from triton_porting_kit.compiler import artefacts
from triton_porting_kit.compiler.tiles.transfer import transfer

HEAD = """
module attributes {tpk.structured = 1 : i32} {
  func.func @kernel(%x: !llvm.ptr, %n: i64, %b: i1, %m: tensor<64x32xi1>, %i: tensor<64x32xi32>) attributes {tpk.kernel} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %f = arith.constant 0.0 : f32
"""
TAIL = "    return\n  }\n}\n"


def counted(body: str) -> Counter[str]:
    """How often each operation of the dialect is there behind the pass."""
    module = artefacts.parse_structured(HEAD + body + TAIL)
    transfer(module, chips.load("n1"))
    artefacts.structured_artefact(module)
    text = str(module.operation.get_asm(print_generic_op_form=True))
    return Counter(re.findall(r'"tpk\.(\w+)"', text))


def load(segments: str, more: str, kinds: str, wraps: str = "") -> str:
    return (
        f'    %v = "tpk.load"(%x, %zero, {more}) {{operandSegmentSizes = array<i32: {segments}>{wraps}}} : '
        f"(!llvm.ptr, i64, {kinds}) -> tensor<64x32xf32>\n"
    )


PLAIN = load("1, 1, 2, 0, 0, 0, 0, 0, 0", "%n, %one", "i64, i64")
BOUNDED = load(
    "1, 1, 2, 2, 2, 0, 0, 0, 1", "%n, %one, %zero, %zero, %n, %n, %f", "i64, i64, i64, i64, i64, i64, f32"
)
WRAPPING = load(
    "1, 1, 2, 0, 0, 1, 1, 0, 0", "%n, %one, %zero, %n", "i64, i64, i64, i64", ", wrap_dims = array<i64: 0>"
)
MASKED = load("1, 1, 2, 0, 0, 0, 0, 1, 0", "%n, %one, %m", "i64, i64, tensor<64x32xi1>")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PLAIN, {"npu_buffer": 1, "npu_dma": 1, "npu_wait": 1, "npu_read": 1}),
        (BOUNDED, {"npu_buffer": 1, "npu_dma": 1, "npu_wait": 1, "npu_read": 1}),
        (
            MASKED,
            {"npu_buffer": 3, "npu_write": 2, "npu_gather": 1, "npu_wait": 1, "npu_read": 1, "range": 2},
        ),
        (WRAPPING, {"npu_buffer": 1, "npu_dma": 1, "npu_wait": 1, "npu_read": 1}),
        (
            PLAIN
            + '    "tpk.store"(%x, %zero, %n, %one, %v) {operandSegmentSizes = array<i32: 1, 1, 2, 0, 0, 0, 0, 0, 1>} : '
            "(!llvm.ptr, i64, i64, i64, tensor<64x32xf32>) -> ()\n",
            {"npu_buffer": 2, "npu_dma": 2, "npu_wait": 2, "npu_read": 1, "npu_write": 1},
        ),
        (
            PLAIN + '    "tpk.scatter"(%x, %i, %v) {operandSegmentSizes = array<i32: 1, 1, 0, 1>} : '
            "(!llvm.ptr, tensor<64x32xi32>, tensor<64x32xf32>) -> ()\n",
            {"npu_buffer": 3, "npu_dma": 1, "npu_wait": 2, "npu_read": 1, "npu_write": 2, "npu_scatter": 1},
        ),
        (
            '    %v = "tpk.load"(%x, %n) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0>} : '
            "(!llvm.ptr, i64) -> f32\n",
            {"npu_element_load": 1},
        ),
    ],
    ids=["tile", "bounds", "mask", "wrap-around", "store", "scatter", "scalar"],
)
def test_accesses_become_transfers(body: str, expected: dict[str, int]) -> None:
    assert counted(body) == expected
