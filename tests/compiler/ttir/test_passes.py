"""Triton's clean-up passes, run by the kit."""

from __future__ import annotations

from typing import Any

import pytest
import triton
import triton.language as tl
from ttir_source import ttir_module

from triton_porting_kit.compiler.ttir import optimize
from triton_porting_kit.toolchain import compat


@triton.jit
def inner(x):
    return x + 1


@triton.jit
def kernel(x, out, n, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [n], [1], [B])
    unused = tl.arange(0, B) * 3  # noqa: F841
    for i in tl.range(0, 4, loop_unroll_factor=2):
        tl.store(out + i * B + tl.arange(0, B), inner(source.load([i * B])))


def test_functions_are_inlined_and_descriptors_are_pointers() -> None:
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    module, _context = ttir_module(kernel, signature, {"B": 64}, optimized=False)
    before = str(module)
    assert "tt.call" in before
    assert "tt.make_tensor_descriptor" in before
    optimize(module)
    after = str(module)
    assert "tt.call" not in after
    assert "tensor_descriptor" not in after
    assert "tt.load" in after
    assert after.count("tt.store") == 2


def test_unrolling_can_be_left_out() -> None:
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    module, _context = ttir_module(kernel, signature, {"B": 64}, optimized=False)
    optimize(module, unroll=False)
    assert str(module).count("tt.store") == 1


@triton.jit
def plain(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at) * 2)


@triton.jit
def calling(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, inner(tl.load(x + at)))


@triton.jit
def first_of_two(x, flag):
    if flag:
        return x
    return -x


@triton.jit
def returning_early(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, first_of_two(tl.load(x + at), n > 0))


@triton.jit
def looping(x, out, n, B: tl.constexpr):
    for i in range(n):
        tl.store(out + i * B + tl.arange(0, B), tl.load(x + i * B + tl.arange(0, B)))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plain, {"common.canonicalizer"}),
        (calling, {"common.inliner"}),
        (returning_early, {"common.inliner", "common.symbol_dce", "common.canonicalizer"}),
        (looping, {"common.canonicalizer", "common.licm"}),
        (kernel, {"common.inliner", "common.canonicalizer", "common.licm", "ttir.loop_unroll",
                  "ttir.rewrite_tensor_descriptor_to_pointer"}),
    ],
)  # fmt: skip
def test_passes_without_anything_to_do_are_left_out(
    function: Any, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[str] = []
    by_kit = compat.run_passes
    monkeypatch.setattr(
        compat, "run_passes", lambda module, names: (run.extend(names), by_kit(module, names))
    )
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    module, _context = ttir_module(function, signature, {"B": 64})
    always = {"ttir.combine", "ttir.reorder_broadcast", "common.cse"}
    # Triton 3.6 does not tell which loops have hints.
    assert set(run) - ({"ttir.loop_unroll"} if function is looping else set()) == always | expected
    assert "tt.call" not in str(module)
