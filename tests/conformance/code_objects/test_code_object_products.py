"""The products in a kernel's IR, and the instructions that there are for them."""

from __future__ import annotations

import pytest

from triton_porting_kit.conformance.code_objects.architectures import ARCHITECTURES, find
from triton_porting_kit.conformance.code_objects.products import (
    Product,
    instructions_for,
    matrix_instructions,
    operands_of,
    products_in,
)

TEXT = """
  %8 = tt.dot %5, %7, %cst : tensor<16x32xbf16> * tensor<32x64xbf16> -> tensor<16x64xf32> loc(#loc1)
  %9 = tt.dot %5, %7, %cst, inputPrecision = tf32 {maxNumImpreciseAcc = 0 : i32} : tensor<4x32x8xf32> * tensor<4x8x16xf32> -> tensor<4x32x16xf32> loc(#loc1)
  %1 = tt.dot_scaled %5 scale %6, %7 scale %8, %cst lhs = e2m1 rhs = e4m3 {fastMath = false} : tensor<16x32xi8>, tensor<16x2xi8> * tensor<64x32xf8E4M3FN>, tensor<32x2xi8> -> tensor<16x32xf32>
  %2 = tt.dot_scaled %5 scale %6, %7, %cst lhs = e5m2 rhs = bf16 {fastMath = false} : tensor<16x64xf8E5M2>, tensor<16x2xi8> * tensor<64x32xbf16> -> tensor<16x32xf32>
"""


def test_products_are_read_in_the_front_ends_text() -> None:
    assert products_in(TEXT) == {
        Product("bf16", "bf16", 16, 64, 32),
        Product("f32", "f32", 32, 16, 8, "tf32"),
        Product("e2m1", "e4m3", 16, 32, 64, scaled=True),
        Product("e5m2", "bf16", 16, 32, 64, scaled=True),
    }
    assert products_in("tt.dotty : tensor<1xi8>") == set()


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("v_mfma_f32_16x16x16f16", "f16"),
        ("v_mfma_f32_32x32x4bf16_1k", "bf16"),
        ("v_mfma_f32_32x32x4_2b_bf16", "bf16"),
        ("v_mfma_f32_16x16x8_xf32", "xf32"),
        ("v_mfma_f64_16x16x4_f64", "f64"),
        ("v_mfma_f32_16x16x32_fp8_bf8", "fp8_bf8"),
        ("v_mfma_scale_f32_16x16x128_f8f6f4", "f8f6f4"),
        ("v_smfmac_f32_16x16x32_f16", "f16"),
        ("v_wmma_i32_16x16x16_iu8", "iu8"),
        ("v_wmma_scale16_f32_16x16x128_f8f6f4", "f8f6f4"),
        ("v_swmmac_f32_16x16x32_bf16", "bf16"),
        ("v_fma_f32", ""),
        ("v_dot2_f32_f16", ""),
        ("s_endpgm", ""),
    ],
)
def test_mnemonics_name_their_operands(name: str, operands: str) -> None:
    assert operands_of(name) == operands
    assert bool(matrix_instructions([name, "s_nop"])) == bool(operands)


def _dot(kind: str, size: int = 16, depth: int = 64, precision: str = "ieee") -> Product:
    return Product(kind, kind, size, size, depth, precision)


@pytest.mark.parametrize(
    ("arch", "product", "wanted"),
    [
        ("gfx90a", _dot("bf16"), {"bf16"}),
        ("gfx90a", _dot("f8E4M3FNUZ"), set()),
        ("gfx942", _dot("f8E4M3FNUZ"), {"fp8_fp8"}),
        ("gfx942", _dot("f8E4M3FN"), set()),
        ("gfx942", Product("f8E4M3FNUZ", "f8E5M2FNUZ", 16, 16, 32), {"fp8_bf8", "bf8_fp8"}),
        ("gfx942", _dot("f8E4M3FNUZ", depth=16), set()),
        ("gfx942", _dot("f32", precision="tf32"), {"xf32", "f32", "bf16"}),
        ("gfx942", _dot("i8", depth=16), set()),
        ("gfx942", _dot("i8", depth=32), {"i8"}),
        ("gfx950", _dot("f8E4M3FN"), {"fp8_fp8"}),
        ("gfx950", _dot("f8E5M2", depth=128), {"bf8_bf8", "f8f6f4"}),
        ("gfx950", _dot("f32", precision="tf32"), {"f32", "bf16"}),
        ("gfx950", Product("e2m1", "e4m3", 16, 16, 128, scaled=True), {"f8f6f4"}),
        ("gfx950", Product("e2m1", "bf16", 16, 16, 128, scaled=True), set()),
        ("gfx942", Product("e2m1", "e4m3", 16, 16, 128, scaled=True), set()),
        ("gfx1100", _dot("i8"), {"iu8"}),
        ("gfx1100", _dot("f32"), set()),
        ("gfx1100", _dot("f8E5M2"), set()),
        ("gfx1201", _dot("f8E5M2"), {"bf8_bf8"}),
        ("gfx1250", _dot("f32"), {"f32"}),
        ("gfx1250", _dot("f64"), set()),
        ("gfx1250", _dot("bf16", size=8), set()),
    ],
)
def test_what_a_product_is_made_with(arch: str, product: Product, wanted: set[str]) -> None:
    architecture = find(arch)
    assert architecture is not None
    assert set(instructions_for(product, architecture)) == wanted


def test_architectures_are_found_with_their_features() -> None:
    assert find("gfx90a:sramecc+:xnack-") is ARCHITECTURES["gfx90a"]
    assert find("sm_90") is None
    assert find(90) is None
