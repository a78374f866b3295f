"""Triton's clean-up passes, run by the kit."""

from __future__ import annotations

import triton
import triton.language as tl
from ttir_source import ttir_module

from triton_porting_kit.compiler.ttir import optimize


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
