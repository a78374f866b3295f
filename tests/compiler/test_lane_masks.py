"""Constants that LLVM must not see in the masks of loads; what it makes of those is tried in tests/isa."""

from __future__ import annotations

import pytest

from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.compiler.lane_masks import with_unknown_masks

MASKS = """
define void @first(ptr %p, ptr %q, <4 x i1> %m, i1 %c) {
  %a = and <4 x i1> %m, <i1 true, i1 true, i1 false, i1 false>
  %b = select i1 %c, <4 x i1> <i1 true, i1 true, i1 false, i1 false>, <4 x i1> %a
  %d = select <4 x i1> <i1 true, i1 false, i1 true, i1 false>, <4 x i64> splat (i64 1), <4 x i64> zeroinitializer
  %x = call <4 x i64> @llvm.masked.load.v4i64.p0(ptr %p, <4 x i1> %b, <4 x i64> %d)
  call void @llvm.masked.store.v4i64.p0(<4 x i64> %x, ptr %q, <4 x i1> <i1 true, i1 true, i1 false, i1 true>)
  ret void
}
define <2 x i1> @second(<2 x i1> %m) {
entry:
  %a = xor <2 x i1> %m, <i1 true, i1 poison>
  ret <2 x i1> %a
}
declare <4 x i64> @llvm.masked.load.v4i64.p0(ptr, <4 x i1>, <4 x i64>)
declare void @llvm.masked.store.v4i64.p0(<4 x i64>, ptr, <4 x i1>)
"""


def test_constants_of_masks_are_hidden_and_no_others() -> None:
    text = with_unknown_masks(MASKS)
    codegen.parse_llvm_ir(text, CpuTarget.named("haswell"))
    assert "%a = and <4 x i1> %m, %tpk.mask.0\n" in text
    assert "%b = select i1 %c, <4 x i1> %tpk.mask.0, <4 x i1> %a\n" in text
    assert "select <4 x i1> <i1 true, i1 false, i1 true, i1 false>, <4 x i64>" in text
    assert "ptr %q, <4 x i1> <i1 true, i1 true, i1 false, i1 true>)" in text
    assert "entry:\n  %tpk.mask.1.bytes = load volatile <2 x i8>, ptr @tpk.mask.1, align 1\n" in text
    assert "@tpk.mask.0 = private constant <4 x i8> <i8 1, i8 1, i8 0, i8 0>\n" in text
    assert text.count("@tpk.mask.0") == 2


def test_what_has_no_masked_load_stays_as_it_is() -> None:
    text = MASKS.replace("llvm.masked.load", "other.load")
    assert with_unknown_masks(text) == text


@pytest.mark.parametrize(
    ("cpu", "by_sign"),
    [
        ("haswell", True),
        ("sandybridge", True),
        ("x86-64", False),
        ("x86-64-v4", False),
        ("cortex-a72", False),
    ],
)
def test_whose_masks_are_signs(cpu: str, by_sign: bool) -> None:
    assert CpuTarget.named(cpu).masks_by_sign == by_sign
    assert ("tpk.mask" in codegen.emit_assembly(MASKS, CpuTarget.named(cpu))) == by_sign
