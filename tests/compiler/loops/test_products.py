"""Which instructions multiply. That the results are right is for the dots in `test_semantics_dots` and the table."""

from __future__ import annotations

import native_functions
import numpy as np
import pytest
import triton
import triton.language as tl
from running import empty, get, put

from triton_porting_kit.compiler import ISA_LEVELS, CpuTarget, codegen

CASCADE_LAKE = CpuTarget.named("cascadelake")
SAPPHIRE_RAPIDS = CpuTarget.named("sapphirerapids")


@triton.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    left, right = tl.load(a + m * K + k[None, :]), tl.load(b + k[:, None] * N + n)
    tl.store(c + m * N + n, tl.dot(left, right, out_dtype=c.dtype.element_ty))


def assembly(types: tuple[str, str], shape: tuple[int, int, int], target: CpuTarget) -> str:
    signature = {"a": f"*{types[0]}", "b": f"*{types[0]}", "c": f"*{types[1]}"}
    sizes = dict(zip("MNK", shape, strict=True))
    loops = native_functions.loops_of(product, signature, target, **sizes)
    return codegen.emit_assembly(codegen.lower_to_llvm_ir(loops.text), target)


BYTES, PAIRS = ("i8", "i32"), ("bf16", "fp32")


@pytest.mark.parametrize(
    ("types", "shape", "target", "instruction"),
    [
        (BYTES, (16, 32, 32), CASCADE_LAKE, "vpdpbusd"),
        (BYTES, (16, 8, 32), CASCADE_LAKE, ""),  # no whole vector of columns
        (BYTES, (16, 32, 32), CASCADE_LAKE.with_features("-avx512vnni"), "vpmaddwd"),
        (BYTES, (16, 32, 32), CpuTarget.named("haswell"), "vpmaddwd"),
        (BYTES, (16, 32, 32), CpuTarget.named("sandybridge"), ""),  # for halves of registers only
        (BYTES, (16, 32, 32), CpuTarget.named("x86-64"), "pmaddwd"),
        (BYTES, (16, 32, 32), CpuTarget.named("neoverse-n1"), ""),
        (PAIRS, (16, 32, 32), CpuTarget.named("znver4"), "vdpbf16ps"),
        (PAIRS, (16, 32, 32), SAPPHIRE_RAPIDS.with_features("-amx-tile"), ""),  # float32 is faster there
        (PAIRS, (16, 32, 32), CASCADE_LAKE, ""),
    ],
)
def test_instructions(
    types: tuple[str, str], shape: tuple[int, int, int], target: CpuTarget, instruction: str
) -> None:
    text = assembly(types, shape, target)
    for name in ("vpdpbusd", "vdpbf16ps", "vpmaddwd", "pmaddwd"):
        assert (f"\t{name}\t" in text) == (name == instruction)


def test_a_block_of_byte_sums_stays_in_registers() -> None:
    text = assembly(BYTES, (64, 64, 64), CASCADE_LAKE)
    loop = text[text.index("vpdpbusd", text.index("vpsubd")) :]
    # A step along K of four rows by four vectors, with four vectors of B and four numbers of A.
    assert loop.count("vpdpbusd") == 16
    assert loop.count("vpbroadcastd") <= 4
    assert "vpxor" not in loop, "rows of A are biased before, once for a strip"


def test_a_block_of_sums_of_words_stays_in_registers() -> None:
    text = assembly(BYTES, (64, 64, 64), CpuTarget.named("haswell"))
    first, last = text.index("\tvpmaddwd\t"), text.rindex("\tvpmaddwd\t")
    # A step along K of four rows by two vectors, with two vectors of B and four numbers of A.
    assert text.count("\tvpmaddwd\t") == 8
    assert text.count("\tvpbroadcastd\t", first - 200, last) <= 4
    assert "(%rsp)" not in text[first:last]


@pytest.mark.parametrize("level", [level.name for level in ISA_LEVELS.values() if not level.missing()])
def test_products_of_the_lowest_bytes(level: str) -> None:
    """Both products of a pair are the largest that there are, as are quads, which have a bias."""
    m, n, k = 16, 32, 64
    a, b, out = (
        put(np.full((m, k), -128, np.int8), "i8"),
        put(np.full((k, n), -128, np.int8), "i8"),
        empty((m, n), "i32"),
    )
    product[(1,)](a, b, out, M=m, N=n, K=k, **ISA_LEVELS[level].options())
    assert (get(out) == k * 2**14).all()


@triton.jit
def product_of_weights(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    weights = tl.exp2(tl.load(a + m * K + k[None, :]))
    right = tl.load(b + k[:, None] * N + n)
    tl.store(c + m * N + n, tl.dot(weights.to(tl.bfloat16), right))


@pytest.mark.parametrize(
    ("target", "rounds"),
    [
        (SAPPHIRE_RAPIDS, True),
        (SAPPHIRE_RAPIDS.with_features("-avx512bf16"), False),
        (CpuTarget.named("znver4"), True),
        (CASCADE_LAKE, False),
    ],
    ids=["tiles", "tiles without pairs", "pairs", "neither"],
)
def test_factors_are_rounded_by_an_instruction_that_treats_denormals_alike(
    target: CpuTarget, rounds: bool
) -> None:
    signature = {"a": "*fp32", "b": "*bf16", "c": "*fp32"}
    loops = native_functions.loops_of(product_of_weights, signature, target, M=32, N=32, K=32)
    text = codegen.emit_assembly(codegen.lower_to_llvm_ir(loops.text), target)
    assert ("\tvcvtne" in text) == rounds
    assert "truncsfbf" not in text
