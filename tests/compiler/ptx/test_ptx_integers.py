"""Integer instructions and moves, against functions of Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
from ptx_kernels import COUNT, assert_same, run, sample
from ptx_oracles import bfe, bfi, dp4a, each, lop3, prmt, shf, signed

s32 = 1 << 31


def _signs(function: Any, bits: int = 32) -> Any:
    return lambda *values: function(*(signed(value, bits) for value in values))


def _clamp(value: int) -> int:
    return max(-s32, min(s32 - 1, value))


CASES: dict[str, tuple[str, str, Any]] = {
    # the statement: result, operands, what it computes
    "add.u32 $0, $1, $2;": ("r", "rr", lambda a, b: a + b),
    "add.s64 $0, $1, $2;": ("l", "ll", lambda a, b: a + b),
    "add.u16 $0, $1, $2;": ("h", "hh", lambda a, b: a + b),
    "add.s32 $0, $1, -7;": ("r", "r", lambda a: a - 7),
    "add.u32 $0, $1, 010;": ("r", "r", lambda a: a + 8),
    "add.sat.s32 $0, $1, $2;": ("r", "rr", _signs(lambda a, b: _clamp(a + b))),
    "sub.s32 $0, $1, $2;": ("r", "rr", lambda a, b: a - b),
    "sub.sat.s32 $0, $1, $2;": ("r", "rr", _signs(lambda a, b: _clamp(a - b))),
    "mul.lo.u32 $0, $1, $2;": ("r", "rr", lambda a, b: a * b),
    "mul.hi.u32 $0, $1, $2;": ("r", "rr", lambda a, b: a * b >> 32),
    "mul.hi.s32 $0, $1, $2;": ("r", "rr", _signs(lambda a, b: a * b >> 32)),
    "mul.hi.u64 $0, $1, $2;": ("l", "ll", lambda a, b: a * b >> 64),
    "mul.hi.s64 $0, $1, $2;": ("l", "ll", _signs(lambda a, b: a * b >> 64, 64)),
    "mul.hi.s16 $0, $1, $2;": ("h", "hh", _signs(lambda a, b: a * b >> 16, 16)),
    "mul.wide.u32 $0, $1, $2;": ("l", "rr", lambda a, b: a * b),
    "mul.wide.s16 $0, $1, $2;": ("r", "hh", _signs(lambda a, b: a * b, 16)),
    "mad.lo.s32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: a * b + c),
    "mad.hi.u32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: (a * b >> 32) + c),
    "mad.wide.u32 $0, $1, $2, $3;": ("l", "rrl", lambda a, b, c: a * b + c),
    "sad.u32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: abs(a - b) + c),
    "sad.s32 $0, $1, $2, $3;": ("r", "rrr", _signs(lambda a, b, c: abs(a - b) + c)),
    "abs.s32 $0, $1;": ("r", "r", _signs(abs)),
    "neg.s64 $0, $1;": ("l", "l", lambda a: -a),
    "min.u32 $0, $1, $2;": ("r", "rr", min),
    "min.s32 $0, $1, $2;": ("r", "rr", _signs(min)),
    "max.u16 $0, $1, $2;": ("h", "hh", max),
    "max.s64 $0, $1, $2;": ("l", "ll", _signs(max, 64)),
    "popc.b32 $0, $1;": ("r", "r", int.bit_count),
    "popc.b64 $0, $1;": ("r", "l", int.bit_count),
    "clz.b32 $0, $1;": ("r", "r", lambda a: 32 - a.bit_length()),
    "clz.b64 $0, $1;": ("r", "l", lambda a: 64 - a.bit_length()),
    "brev.b32 $0, $1;": ("r", "r", lambda a: int(f"{a:032b}"[::-1], 2)),
    "brev.b64 $0, $1;": ("l", "l", lambda a: int(f"{a:064b}"[::-1], 2)),
    "bfe.u32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: bfe(a, b, c, is_signed=False)),
    "bfe.s32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: bfe(a, b, c, is_signed=True)),
    "bfe.s64 $0, $1, $2, $3;": ("l", "lrr", lambda a, b, c: bfe(a, b, c, is_signed=True, msb=63)),
    "bfe.u32 $0, $1, 4, 8;": ("r", "r", lambda a: a >> 4 & 255),
    "bfe.s32 $0, $1, 28, 4;": ("r", "r", lambda a: signed(a, 32) >> 28),
    "bfi.b32 $0, $1, $2, $3, $4;": ("r", "rrrr", bfi),
    "bfi.b32 $0, $1, $2, 8, 16;": ("r", "rr", lambda a, b: bfi(a, b, 8, 16)),
    "dp4a.u32.u32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: dp4a(a, b, c, is_signed=False)),
    "dp4a.s32.s32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: dp4a(a, b, c, is_signed=True)),
    "and.b32 $0, $1, $2;": ("r", "rr", lambda a, b: a & b),
    "or.b64 $0, $1, $2;": ("l", "ll", lambda a, b: a | b),
    "xor.b16 $0, $1, $2;": ("h", "hh", lambda a, b: a ^ b),
    "not.b32 $0, $1;": ("r", "r", lambda a: ~a),
    "lop3.b32 $0, $1, $2, $3, 0xea;": ("r", "rrr", lambda a, b, c: a & b | c),
    "lop3.b32 $0, $1, 0x000f000f, 0x64006400, 234;": ("r", "r", lambda a: a & 0xF000F | 0x64006400),
    "shl.b32 $0, $1, $2;": ("r", "rr", lambda a, b: a << b if b < 32 else 0),
    "shl.b64 $0, $1, $2;": ("l", "lr", lambda a, b: a << b if b < 64 else 0),
    "shl.b16 $0, $1, $2;": ("h", "hr", lambda a, b: a << b if b < 16 else 0),
    "shl.b32 $0, $1, 32;": ("r", "r", lambda a: 0),
    "shr.u32 $0, $1, $2;": ("r", "rr", lambda a, b: a >> b),
    "shr.b32 $0, $1, 5;": ("r", "r", lambda a: a >> 5),
    "shr.s32 $0, $1, $2;": ("r", "rr", lambda a, b: signed(a, 32) >> min(b, 31)),
    "shr.s64 $0, $1, 33;": ("l", "l", lambda a: signed(a, 64) >> 33),
    "shf.l.wrap.b32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: shf(a, b, c, left=True, wrap=True)),
    "shf.l.clamp.b32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: shf(a, b, c, left=True, wrap=False)),
    "shf.r.wrap.b32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: shf(a, b, c, left=False, wrap=True)),
    "shf.r.clamp.b32 $0, $1, $2, $3;": ("r", "rrr", lambda a, b, c: shf(a, b, c, left=False, wrap=False)),
    "prmt.b32 $0, $1, $2, $3;": ("r", "rrr", prmt),
    "prmt.b32 $0, $1, $2, 0x5410;": ("r", "rr", lambda a, b: prmt(a, b, 0x5410)),
    "prmt.b32 $0, $1, 0, 0x8b1f;": ("r", "r", lambda a: prmt(a, 0, 0x8B1F)),
    "mov.b32 $0, $1;": ("r", "r", lambda a: a),
    "{ .reg .b16 lo, hi; mov.b32 {lo, hi}, $1; mov.b32 $0, {hi, lo}; }": ("r", "r", lambda a: a >> 16 | a << 16),
    "{ .reg .b8 b<4>; mov.b32 {b0, b1, b2, b3}, $1; mov.b32 $0, {b3, b2, b1, b0}; }": (
        "r", "r", lambda a: int.from_bytes(a.to_bytes(4, "little"), "big")),
    "{ .reg .b32 hi; mov.b64 {_, hi}, $1; mov.b32 $0, hi; }": ("r", "l", lambda a: a >> 32),
    "{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.b32 $0, $1, $2, p; }": ("r", "rr", _signs(min)),
    "{ .reg .pred p; setp.hs.u32 p, $1, $2; selp.u32 $0, 1, 0, p; }": ("r", "rr", lambda a, b: int(a >= b)),
    "{ .reg .pred p, q; setp.ne.b32 p, $1, 0; setp.gt.u32 q, $2, 5; and.pred p, p, q; not.pred q, p;"
    " or.pred q, q, p; xor.pred p, p, q; selp.s32 $0, 1, -1, p; }": (
        "r", "rr", lambda a, b: -1 if a and b > 5 else 1),
    "{ .reg .pred %p1; mov.u32 $0, 3; setp.eq.s32 %p1, $1, $2; @%p1 add.s32 $0, $1, 1; @!%p1 sub.s32 $0, $0, $2; }": (
        "r", "rr", lambda a, b: a + 1 if a == b else 3 - b),
    "cvt.u32.u8 $0, $1;": ("r", "r", lambda a: a & 255),
    "cvt.s32.s8 $0, $1;": ("r", "r", lambda a: signed(a & 255, 8)),
    "cvt.s64.s32 $0, $1;": ("l", "r", lambda a: signed(a, 32)),
    "cvt.s16.s8 $0, $1;": ("r", "r", lambda a: signed(a & 255, 8)),
    "cvt.sat.s8.s32 $0, $1;": ("r", "r", lambda a: max(-128, min(127, signed(a, 32)))),
    "cvt.sat.u8.s32 $0, $1;": ("r", "r", lambda a: max(0, min(255, signed(a, 32)))),
    "cvt.sat.s32.u32 $0, $1;": ("r", "r", lambda a: min(a, s32 - 1)),
    "cvt.u16.u32 $0, $1;": ("h", "r", lambda a: a),
}  # fmt: skip


@pytest.mark.parametrize("asm", CASES)
def test_integers(asm: str) -> None:
    result, operands, oracle = CASES[asm]
    arrays = [sample(letter, seed) for seed, letter in enumerate(operands)]
    if operands in (
        "rrr",
        "lrr",
        "rrrr",
        "rr",
        "lr",
        "hr",
    ):  # operands that may be positions: mostly small ones
        small = np.random.default_rng(9).integers(0, 70, (len(operands), arrays[0].size), np.uint32)
        for place in range(1, len(operands)):
            half = arrays[place].size // 2
            arrays[place][half:] = small[place][half:]
    bits = {"h": 16, "r": 32, "l": 64}[result]
    actual = run(triton.runtime.driver.active.device, asm, result, operands, arrays)
    assert_same(actual, each(oracle, bits)(*arrays), *arrays)


def test_every_function_of_three_bits() -> None:
    """All tables of lop3, in blocks that combine their results."""
    random = np.random.default_rng(3)
    arrays = [random.integers(0, 2**32, COUNT, np.uint32) for _ in range(3)]
    few = [array[:16] for array in arrays]
    for first in range(0, 256, 64):
        step = "lop3.b32 t, $1, $2, $3, {}; shf.l.wrap.b32 $0, $0, $0, 7; xor.b32 $0, $0, t;"
        statements = [step.format(table) for table in range(first, first + 64)]
        asm = f"{{ .reg .b32 t; mov.u32 $0, 0; {' '.join(statements)} }}"
        expected = np.zeros(16, np.uint32)
        for table in range(first, first + 64):
            rotated = expected << np.uint32(7) | expected >> np.uint32(25)
            expected = rotated ^ each(lop3(table))(*few)
        actual = run(triton.runtime.driver.active.device, asm, "r", "rrr", arrays)
        assert_same(actual[:16], expected)
