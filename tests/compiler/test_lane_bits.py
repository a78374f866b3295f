"""Vectors of booleans that LLVM must not truncate from bytes where AVX-512 is: it may read another register."""

from __future__ import annotations

import re

from triton_porting_kit.compiler import CpuTarget, codegen
from triton_porting_kit.compiler.lane_bits import with_compared_booleans

REGISTERS = 20
"""Vectors that are needed behind the mask, so that it gets a register above xmm15."""


def scatter() -> str:
    values = "".join(f"  %v{i} = load volatile <2 x i64>, ptr %p, align 8\n" for i in range(REGISTERS))
    uses = "".join(f"  store volatile <2 x i64> %v{i}, ptr %p, align 8\n" for i in range(REGISTERS))
    return (
        "define void @kernel(ptr %p, <2 x ptr> %q, <2 x i8> %x) {\n"
        f"{values}  %b = load <2 x i8>, ptr %p, align 1\n  %m = trunc <2 x i8> %b to <2 x i1>\n"
        "  call void @llvm.masked.scatter.v2i8.v2p0(<2 x i8> %x, <2 x ptr> align 1 %q, <2 x i1> %m)\n"
        f"{uses}  ret void\n}}\ndeclare void @llvm.masked.scatter.v2i8.v2p0(<2 x i8>, <2 x ptr>, <2 x i1>)\n"
    )


def test_booleans_are_compared_and_other_truncations_stay() -> None:
    text = with_compared_booleans(
        "  %1 = trunc <4 x i8> %0 to <4 x i1>\n  %2 = trunc <4 x i32> %9 to <4 x i8>\n"
    )
    assert text == (
        "  %tpk.bit.0 = and <4 x i8> %0, splat (i8 1)\n"
        "  %1 = icmp ne <4 x i8> %tpk.bit.0, zeroinitializer\n"
        "  %2 = trunc <4 x i32> %9 to <4 x i8>\n"
    )


def test_no_register_is_read_that_an_instruction_cannot_name() -> None:
    assembly = codegen.emit_assembly(scatter(), CpuTarget.named("znver4"))
    assert re.search(r"%xmm(1[6-9]|[23]\d)", assembly)
    assert "vpmovmskb" not in assembly
