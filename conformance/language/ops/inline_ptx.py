"""`tl.inline_asm_elementwise` with instructions of PTX, whose results the PTX ISA defines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.expression import defaulted, expression
from triton_porting_kit.conformance.language.ops.functions import POWER_OF_TWO
from triton_porting_kit.conformance.language.shapes import ODD, Shape, tile
from triton_porting_kit.conformance.language.table import EXACT, Op, Tolerance
from triton_porting_kit.conformance.types import KINDS, Array

SECTION = "Inline PTX"
SHAPES = (Shape("scalar", (120,), scalar=True), tile(1000), ODD)
PACKED = (tile(1000), tile(33, 20))
"""With at least four elements for each thread of a GPU: Triton cannot pack those of several threads."""
RELATIVE = "the PTX ISA bounds the relative error by 2^"
TANH = Tolerance(8266.0, f"{RELATIVE}-10.987")
INVERSE_ROOT = Tolerance(2.15, f"{RELATIVE}-22.9")
RECIPROCAL = Tolerance(2.0, f"{RELATIVE}-23")
FUSED = Tolerance(0.501, "rounded once; the oracle computes in float64")


def _block(
    name: str,
    asm: str,
    letters: str,
    oracle: Callable[..., Any],
    kind: str = "i32",
    result: str = "",
    pack: int = 1,
    tolerance: Tolerance = EXACT,
    **more: Any,
) -> Op:
    """A block of assembly on operands of one type; `letters` are the constraints, first that of the result."""
    count = (len(letters) - 1) // pack
    result = result or kind
    constraints = ",".join(["=" + letters[0], *letters[1:]])
    text = asm.replace("{", "{{").replace("}", "}}")
    code = (
        f'tl.inline_asm_elementwise("{text}", "{constraints}", [{", ".join("xyz"[:count])}], '
        f"dtype=tl.{KINDS[result].language.removeprefix('tl.')}, is_pure=True, pack={pack})"
    )
    defaults = {
        "shapes": SHAPES if pack == 1 else PACKED,
        "refused": (),
        "form": asm,
    }
    return expression(f"ptx_{name}", SECTION, code, oracle, (kind,), operands=("T",) * count, results=(result,),
        tolerance=tolerance, **defaulted(more, defaults))  # fmt: skip


def _unsigned(function: Callable[..., int]) -> Callable[..., Array]:
    """A function of 32-bit patterns."""

    def compute(*operands: Array) -> Array:
        patterns = [operand % (1 << 32) for operand in operands]
        return np.asarray(np.frompyfunc(function, len(patterns), 1)(*patterns), object)

    return compute


def _bytes(x: int, y: int) -> int:
    return int.from_bytes((y << 32 | x).to_bytes(8, "little")[::2], "little")


def _saturating(x: Array) -> Array:
    return np.asarray(np.clip(np.rint(x), -(2.0**31), 2.0**31 - 1).astype(object))


def _flushed(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of fp32 with ``.ftz``: of a zero for a denormal."""
    return lambda x: function(np.where(np.abs(x) < 2.0**-126, np.copysign(0.0, x), x))


def _not_nan(x: Array) -> Array:
    return np.asarray(x == x)


OPS: tuple[Op, ...] = (
    _block("prmt", "prmt.b32 $0, $1, $2, 0x6420;", "rrr", _unsigned(_bytes)),
    _block("lop3", "lop3.b32 $0, $1, $2, $3, 0xca;", "rrrr", _unsigned(lambda x, y, z: x & y | ~x & z)),
    _block("bfe", "bfe.u32 $0, $1, 5, 11;", "rr", _unsigned(lambda x: x >> 5 & 0x7FF)),
    _block("bfe_signed", "bfe.s32 $0, $1, 28, 4;", "rr", lambda x: x >> 28),
    _block("bfi", "bfi.b32 $0, $1, $2, 8, 16;", "rrr", _unsigned(lambda x, y: y & 0xFF0000FF | (x & 0xFFFF) << 8)),
    _block("shf", "shf.l.wrap.b32 $0, $1, $2, 8;", "rrr", _unsigned(lambda x, y: y << 8 | x >> 24)),
    _block("shr_all", "{ .reg .u32 n; mov.u32 n, 40; shr.s32 $0, $1, n; }", "rr", lambda x: x >> 31),
    _block("predicate", "{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.b32 $0, $1, $2, p; }", "rrr", np.minimum),
    _block("halves", "{ .reg .b16 lo, hi; mov.b32 {lo, hi}, $1; mov.b32 $0, {hi, lo}; }", "rr",
           _unsigned(lambda x: x << 16 | x >> 16)),
    _block("fma_rn", "fma.rn.f32 $0, $1, $2, $3;", "ffff", lambda x, y, z: x * y + z, "fp32", tolerance=FUSED),
    _block("add_rn", "add.rn.f32 $0, $1, $2;", "fff", np.add, "fp32"),
    _block("rcp_rn", "rcp.rn.f32 $0, $1;", "ff", lambda x: 1 / x, "fp32"),
    _block("tanh", "tanh.approx.f32 $0, $1;", "ff", np.tanh, "fp32", tolerance=TANH, may_flush=True),
    _block("ex2", "ex2.approx.ftz.f32 $0, $1;", "ff", _flushed(np.exp2), "fp32", tolerance=POWER_OF_TWO, may_flush=True),
    _block("rsqrt", "rsqrt.approx.ftz.f32 $0, $1;", "ff", _flushed(lambda x: 1 / np.sqrt(x)), "fp32", tolerance=INVERSE_ROOT,
           may_flush=True),
    _block("rcp", "rcp.approx.ftz.f32 $0, $1;", "ff", _flushed(lambda x: 1 / x), "fp32", tolerance=RECIPROCAL, may_flush=True),
    _block("to_integer", "cvt.rni.s32.f32 $0, $1;", "rf", _saturating, "fp32", "i32", defined=_not_nan),
    _block("to_bf16", "cvt.rn.bf16x2.f32 $0, $2, $1;", "rff", lambda x: x, "fp32", "bf16", pack=2),
    _block("to_fp16", "cvt.rn.f16x2.f32 $0, $2, $1;", "rff", lambda x: x, "fp32", "fp16", pack=2),
    _block("to_fp8e4nv", "{ .reg .b16 lo, hi; cvt.rn.satfinite.e4m3x2.f32 lo, $2, $1; "
           "cvt.rn.satfinite.e4m3x2.f32 hi, $4, $3; mov.b32 $0, {lo, hi}; }", "rffff",
           lambda x: np.clip(x, -448, 448), "fp32", "fp8e4nv", pack=4),
)  # fmt: skip
