"""Whole blocks: packed operands, several results, scalars, the parser, and what is refused."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from ptx_kernels import COUNT, assert_same, run, sample
from ptx_oracles import E2M1, E4M3, narrow, small

from triton_porting_kit.compiler.ptx.errors import AssemblyError, UnknownInstruction
from triton_porting_kit.compiler.ptx.parser import (
    Close,
    Declaration,
    Immediate,
    Instruction,
    Open,
    Register,
    Sink,
    Vector,
    parse,
)
from triton_porting_kit.driver import DeviceArray
from triton_porting_kit.errors import CompilationError


@pytest.fixture
def device() -> Any:
    return triton.runtime.driver.active.device


# --- packed elements -------------------------------------------------------------------------------------


def test_four_bytes_in_a_register(device: Any) -> None:
    x, y = sample("b", 1), sample("b", 2)
    low, high = (np.full(COUNT, 16, np.uint8), np.full(COUNT, 200, np.uint8))
    asm = "{ .reg .b32 t; and.b32 t, $1, 0x0f0f0f0f; lop3.b32 $0, t, $2, 0xf0f0f0f0, 0xf8; }"
    actual = run(device, asm, "b", "bb", [x, y], pack=4)
    assert_same(actual, x & 15 | y & 0xF0, x, y)
    assert_same(run(device, "add.u32 $0, $1, $2;", "b", "bb", [low, low], pack=4), low + low)
    carried = run(device, "add.u32 $0, $1, $2;", "b", "bb", [high, high], pack=2)  # of two bytes: one carry
    assert carried.reshape(-1, 2).tolist() == [[144, 145]] * (COUNT // 2)


@triton.jit
def eight_bits_kernel(X, O, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    y = tl.inline_asm_elementwise(
        """
        {
            .reg .b16 low, high;              // two pairs
            cvt.rn.satfinite.e4m3x2.f32 low, $2, $1;
            cvt.rn.satfinite.e4m3x2.f32 high, $4, $3;
            mov.b32 $0, {low, high};
        }
        """,
        "=r,f,f,f,f",
        [tl.load(X + i)],
        dtype=tl.int8,
        is_pure=True,
        pack=4,
    )
    tl.store(O + i, y)


def test_floats_to_packed_eight_bit_floats(device: Any) -> None:
    x = sample("f", 3)
    out = DeviceArray.empty(COUNT, "int8", device)
    eight_bits_kernel[(4,)](DeviceArray.from_numpy(x, device), out, COUNT // 4)
    convert = small(E4M3, 8, 0x7F)
    assert_same(out.numpy().view(np.uint8), np.array([convert(v) for v in x.tolist()], np.uint8), x)


@triton.jit
def four_bits_kernel(X, O, B: tl.constexpr):
    """Neighbours become one byte: two results of a reshaped tile go in as two operands."""
    i = tl.arange(0, B)
    even, odd = tl.split(tl.load(X + i).reshape(B // 2, 2))
    y = tl.inline_asm_elementwise(
        "{ .reg .b8 b<4>; cvt.rn.satfinite.e2m1x2.f32 b0, $5, $1; cvt.rn.satfinite.e2m1x2.f32 b1, $6, $2;"
        " cvt.rn.satfinite.e2m1x2.f32 b2, $7, $3; cvt.rn.satfinite.e2m1x2.f32 b3, $8, $4;"
        " mov.b32 $0, {b0, b1, b2, b3}; }",
        "=r,r,r,r,r,r,r,r,r",
        [even, odd],
        dtype=tl.uint8,
        is_pure=True,
        pack=4,
    )
    tl.store(O + tl.arange(0, B // 2), y)


def test_floats_to_packed_four_bit_floats(device: Any) -> None:
    x = sample("f", 3)
    out = DeviceArray.empty(COUNT // 2, "uint8", device)
    four_bits_kernel[(1,)](DeviceArray.from_numpy(x, device), out, COUNT)
    codes = np.array([small(E2M1, 4, 7)(v) for v in x.tolist()], np.uint8)
    assert_same(out.numpy(), codes[0::2] | codes[1::2] << np.uint8(4), x[0::2], x[1::2])


@triton.jit
def two_results_kernel(X, Y, P, Q, B: tl.constexpr):
    i = tl.arange(0, B)
    p, q = tl.inline_asm_elementwise(
        "prmt.b32 $0, $2, $3, 0x5140; prmt.b32 $1, $2, $3, 0x7362;",
        "=r,=r,r,r",
        [tl.load(X + i), tl.load(Y + i)],
        dtype=tl.uint16,
        is_pure=True,
        pack=4,
    ), tl.inline_asm_elementwise("cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,f,f", [tl.load(X + i).to(tl.float32)],
                                 dtype=tl.bfloat16, is_pure=True, pack=2)  # fmt: skip
    tl.store(P + i, p)
    tl.store(Q + i, q)


def test_a_result_of_several_registers(device: Any) -> None:
    x, y = sample("b", 1), sample("b", 2)
    p, q = DeviceArray.empty(COUNT, "uint16", device), DeviceArray.empty(COUNT, "bfloat16", device)
    two_results_kernel[(1,)](
        DeviceArray.from_numpy(x, device), DeviceArray.from_numpy(y, device), p, q, COUNT
    )
    assert_same(p.numpy(), x | y.astype(np.uint16) << np.uint16(8))
    assert_same(np.asarray(q.numpy()).view(np.uint16), narrow(x.astype(object), "bf16"))


@triton.jit
def softplus_kernel(X, O, B: tl.constexpr):
    """Registers that are written under a predicate and under its negation."""
    tl.inline_asm_elementwise(
        "griddepcontrol.wait; // no result", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
    i = tl.arange(0, B)
    y = tl.inline_asm_elementwise(
        """
        .reg .pred p;
        setp.gt.f32 p, $1, 15.;
        @p  mov.f32 $0, $1;
        @!p ex2.approx.ftz.f32 $0, $1;
        @!p add.f32 $0, $0, 1.0;
        @!p lg2.approx.ftz.f32 $0, $0;
        """,
        "=r,r",
        [tl.load(X + i)],
        dtype=tl.float32,
        is_pure=True,
        pack=1,
    )
    tl.store(O + i, y)


def test_results_under_both_values_of_a_predicate(device: Any) -> None:
    x = np.linspace(-100, 100, COUNT, dtype=np.float32)
    out = DeviceArray.empty(COUNT, "float32", device)
    softplus_kernel[(1,)](DeviceArray.from_numpy(x, device), out, COUNT)
    expected = np.where(x > 15, x, np.log2(1 + np.exp2(x.astype(np.float64))))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6, atol=2.0**-23)


@triton.jit
def tuple_kernel(X, P, Q, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    p, q = tl.inline_asm_elementwise(
        "shr.u32 $0, $2, 16; cvt.rn.f32.u32 $1, $2;",
        "=r,=f,r",
        [x],
        dtype=(tl.int32, tl.float32),
        is_pure=True,
        pack=1,
    )
    scale = tl.inline_asm_elementwise(
        "mul.lo.s32 $0, $1, 3;", "=r,r", [tl.program_id(0) + 2], dtype=tl.int32, is_pure=True, pack=1
    )
    tl.store(P + i, p * scale)
    tl.store(Q + i, q)


def test_results_of_different_types_and_scalars(device: Any) -> None:
    x = sample("r", 1)
    p, q = DeviceArray.empty(COUNT, "int32", device), DeviceArray.empty(COUNT, "float32", device)
    tuple_kernel[(1,)](DeviceArray.from_numpy(x, device), p, q, COUNT)
    assert_same(p.numpy().view(np.uint32), (x >> np.uint32(16)) * np.uint32(6))
    assert_same(q.numpy(), x.astype(np.float32))


# --- the parser ------------------------------------------------------------------------------------------


def test_statements_of_a_block() -> None:
    found = parse(
        "{ // a comment; with a semicolon\n .reg .b32 t<2>, %u; /* another\n one */"
        "@!%p  mov.b32 {t0, _}, $1; add.f32 $0, 0fBF800000, -1.5e3; lop3.b32 $0, $1, 0x1F, 0b101, 017; }"
    )
    assert [type(each) for each in found] == [Open, Declaration, Instruction, Instruction, Instruction, Close]
    assert found[1] == Declaration("b32", ("t0", "t1", "%u"))
    assert found[2] == Instruction("mov.b32", (Vector((Register("t0"), Sink())), Register("$1")), "%p", True)
    assert found[3] == Instruction(
        "add.f32", (Register("$0"), Immediate(0xBF800000, 0xBF800000), Immediate(-1500.0))
    )
    assert found[4].operands[2:] == (Immediate(31), Immediate(5), Immediate(15))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "opcode"),
    [
        ("ld.global.b32 $0, [$1];", "ld.global.b32"),
        ("loop: add.u32 $0, $0, 1;", "loop: add.u32 $0, $0, 1"),
        ("setp.eq.and.u32 p|q, $1, $2, r;", "setp.eq.and.u32"),
        ("@p bra done;", "bra"),
        ("v_cvt_pk_fp8_f32 $0, $1, $2", "v_cvt_pk_fp8_f32"),
    ],
)
def test_instructions_that_are_not_in_the_table(text: str, opcode: str) -> None:
    from triton_porting_kit.compiler.ptx.machine import check

    with pytest.raises(UnknownInstruction) as raised:
        check(parse(text))
    assert raised.value.opcode == opcode


@pytest.mark.parametrize("text", ["}", "{ mov.b32 $0, $1;", "mov.b32 $0, $1 + 2;", ".reg .b32 [x];"])
def test_texts_that_are_not_ptx(text: str) -> None:
    with pytest.raises(AssemblyError):
        parse(text)


# --- refusals --------------------------------------------------------------------------------------------


@triton.jit
def refused_kernel(X, B: tl.constexpr, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr, PACK: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    y = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [x], dtype=tl.int32, is_pure=True, pack=PACK)
    tl.store(X + i, y)


@triton.jit
def packed_scalar_kernel(X):
    x = tl.load(X)
    y = tl.inline_asm_elementwise(
        "mov.b32 $0, $2; mov.b32 $1, $3;", "=r,=r,r,r", [x], dtype=tl.int32, is_pure=True, pack=2
    )
    tl.store(X, y)


def test_scalars_cannot_be_packed(device: Any) -> None:
    x = DeviceArray.from_numpy(np.zeros(1, np.int32), device)
    with pytest.raises(CompilationError, match="1 elements cannot be divided into packs of 2"):
        packed_scalar_kernel[(1,)](x)


REFUSED = {
    "mov.u32 $0, %laneid;": ("=r,r", 1, "the register %laneid is not declared"),
    "ld.shared.b32 $0, [$1];": ("=r,r", 1, "the instruction `ld.shared.b32` is not among"),
    "mul.f16x4 $0, $1, $1;": ("=r,r", 1, "the instruction `mul.f16x4` is not among"),
    "add.u32 $0, $1;": ("=r,r", 1, r"takes a result and 2 sources, not 2 operands"),
    "add.u64 $0, $1, $1;": ("=r,r", 1, r"the register \$1 has 32 bits where 64 are read"),
    "{ .reg .b32 t; add.u32 $0, $1, t; }": ("=r,r", 1, "the register t is read before it is written"),
    "{ .reg .b32 t; mov.b32 t, $1; }": ("=r,r", 1, r"the register \$0 is read before it is written"),
    "{ .reg .b128 t; mov.b32 $0, $1; }": ("=r,r", 1, "registers of type .b128"),
    "mov.u32 $0, %tid.x;": ("=r,r", 1, r"the register %tid\.x is not declared"),
    "lop3.b32 $0, $1, $1, $1, $1;": ("=r,r", 1, "has to be a literal"),
    "mov.b32 $0, $1; ": ("=r,h", 1, "the constraint 'h' does not fit an operand of 32 bits"),
    "mov.b32 $0,  $1;": ("=r,r,r", 1, "are for 3 registers, and the operands take 2"),
    "mov.b32 1, $1;": ("=r,r", 1, "writes to a literal"),
    "mov.b32 $0, _;": ("=r,r", 1, "reads _"),
}


@pytest.mark.parametrize("asm", REFUSED)
def test_refusals_name_the_cause_the_line_and_a_remedy(asm: str, device: Any) -> None:
    constraints, pack, cause = REFUSED[asm]
    x = DeviceArray.from_numpy(np.zeros(16, np.int32), device)
    with pytest.raises(CompilationError, match=cause) as raised:
        refused_kernel[(1,)](x, 16, asm, constraints, pack)
    lines, first = inspect.getsourcelines(refused_kernel.fn)
    line = next(first + k for k, text in enumerate(lines) if "inline_asm" in text)
    assert raised.value.location is not None
    assert raised.value.location.line == line
    assert raised.value.operation == "tt.elementwise_inline_asm"
    assert "docs/inline-ptx.md" in raised.value.remedy
