"""Which part of a kernel ended up in named operations, by counts that follow from the kernels' shapes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "tiles"))

from chip_kernels import attention, large_doubled, large_masked, matmul

from triton_porting_kit import chips
from triton_porting_kit.cli.compile import structured
from triton_porting_kit.compiler import artefacts, linalg_stage, npu_pipeline
from triton_porting_kit.compiler.summary import BYTES, MULTIPLY_ADDS, REST, Summary, summarised

MATMUL = (matmul, "*fp16, *fp16, *fp16, i32, i32, i32, i32, i32, i32", ("BM=128", "BN=256", "BK=64"))
ATTENTION = (attention, "*fp16, *fp16, *fp16, *fp16, fp32, i32", ("BM=128", "BN=64", "D=64", "CAUSAL=True"))
MASKED = (large_masked, "*fp32, *fp32, i32", ("B=512",))
DOUBLED = (large_doubled, "*fp32, *fp32", ("B=512",))


def summary(kernel: tuple[Any, str, tuple[str, ...]], chip: str | None = "n1") -> Summary:
    """The summary of a kernel for a chip, or in the linalg form."""
    function, signature, constants = kernel
    source = structured(function, signature, constants, sys.modules[function.fn.__module__])
    if chip is None:
        form, stage = "linalg", linalg_stage()
    else:
        form, stages = "tiles", npu_pipeline(chips.load(chip))
        stage = stages.stages[stages.index(form)]
    made = stage.run(source, {})
    return summarised(artefacts.parse_structured(source), artefacts.parse_mlir(str(made)), form)


def test_a_product_is_the_matrix_units() -> None:
    found = summary(MATMUL)
    assert found.total(MULTIPLY_ADDS) == found.total(MULTIPLY_ADDS, "matrix unit") == 128 * 256 * 64
    tiles = 2 * (128 * 64 + 64 * 256 + 128 * 256)
    assert found.total(BYTES) == found.total(BYTES, "transfers") == tiles
    assert found.part(BYTES) == found.part(MULTIPLY_ADDS) == 1


def test_what_the_chip_does_not_have_is_code_of_elements() -> None:
    found = summary(MATMUL, "single")
    assert found.part(MULTIPLY_ADDS) == 0
    assert found.part(BYTES) == 1
    assert f"multiply-adds: {128 * 256 * 64:,}; 100 % {REST}" in str(found)
    assert summary(MASKED, "single").part(BYTES) == 0  # without a gather, a mask is the core's


def test_sums_of_products_of_elements_are_counted() -> None:
    found = summary(ATTENTION)
    products = 2 * 128 * 64 * 64
    assert found.total(MULTIPLY_ADDS, "matrix unit") == products
    assert found.total(MULTIPLY_ADDS) == products + 128  # total * less + ...
    assert [row.what for row in found.rows if row.named == {}] == ["multiply and add"]
    assert 0.999 < found.part(MULTIPLY_ADDS) < 1


def test_masks_are_gathers_and_scatters() -> None:
    found = summary(MASKED)
    assert found.total(BYTES, "gathers and scatters") == found.total(BYTES) == 2 * 4 * 512 * 512


@pytest.mark.parametrize("chip", ["n1", "ascend910b"])
def test_pieces_of_a_tile_are_the_whole(chip: str) -> None:
    found = summary(DOUBLED, chip)
    assert found.total(BYTES, "transfers") == found.total(BYTES) == 2 * 4 * 512 * 512


def test_a_loop_of_known_length_is_counted_as_a_whole() -> None:
    source = """
module attributes {tpk.structured = 1 : i32} {
  func.func @kernel(%x: !llvm.ptr) attributes {tpk.kernel} {
    %first = arith.constant 0 : i64
    %last = arith.constant 12 : i64
    %one = arith.constant 1 : i64
    scf.for %i = %first to %last step %one : i64 {
      %v = "tpk.load"(%x, %i, %one) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (!llvm.ptr, i64, i64) -> tensor<16xf32>
      "tpk.store"(%x, %i, %one, %v) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 1>} : (!llvm.ptr, i64, i64, tensor<16xf32>) -> ()
    }
    return
  }
}
"""
    made = npu_pipeline(chips.load("n1")).after("structured").until("tiles").run(source, {})["tiles"]
    found = summarised(artefacts.parse_structured(source), artefacts.parse_mlir(str(made)), "tiles")
    assert found.total(BYTES) == found.total(BYTES, "transfers") == 2 * 12 * 64


def test_the_linalg_form() -> None:
    found = summary(MATMUL, None)
    assert found.total(MULTIPLY_ADDS, "linalg.matmul") == found.total(MULTIPLY_ADDS) == 128 * 256 * 64
    assert found.total(BYTES, "bufferization.materialize_in_destination") == 2 * 128 * 256
