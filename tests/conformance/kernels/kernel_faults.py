"""Faults planted in the text of kernels: what each changes, and the check that has to notice."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Fault(NamedTuple):
    """A kernel whose text reads otherwise."""

    check: str
    """Group and what; the level's name goes before it."""
    kernel: str
    """Module and name; modules are of the level, or of the kit's kernels where they begin with ``kit.``."""
    old: str
    new: str

    @property
    def id(self) -> str:
        return f"{self.check}: {self.old} -> {self.new}"


FAULTS = (
    # elementwise
    Fault("vector-add/fp32-1025", "kit.vector_add.vector_add_kernel", "x + y", "x - y"),
    Fault("vector-add/bf16-1023", "kit.vector_add.vector_add_kernel", "out_ptr + offsets, x + y, mask=inside", "out_ptr + offsets, x + y, mask=offsets <= n_elements"),
    Fault("vector-add/i8-1025", "kit.vector_add.vector_add_kernel", "inside = offsets < n_elements", "inside = offsets < n_elements - 1"),
    Fault("gelu-residual/fp32-33x65", "kit.gelu.gelu_residual_kernel", "0.7071067811865476", "0.7"),
    Fault("gelu-residual/bf16-33x65", "kit.gelu.gelu_residual_kernel", ") + residual", ") - residual"),
    Fault("gelu-residual/fp16-33x65", "kit.gelu.gelu_residual_kernel", "x * a + b", "x * a"),
    Fault("swiglu/fp32-3x100", "elementwise.swiglu_kernel", "tl.exp(-gate)", "tl.exp(gate)"),
    Fault("swiglu/fp16-5x1500", "elementwise.swiglu_kernel", "2 * n_cols + n_cols + cols", "2 * n_cols + cols"),
    # softmax
    Fault("softmax/fp32-7x33", "kit.softmax.softmax_kernel", 'other=-float("inf")', "other=0.0"),
    Fault("softmax/fp32-9x500-shifted", "kit.softmax.softmax_kernel", "x - tl.max(x, axis=0)", "x"),
    Fault("online-softmax/fp32-5x2000", "softmax.online_softmax_kernel", "total * tl.exp(top - new_top)", "total"),
    Fault("online-softmax/bf16-5x2000", "softmax.online_softmax_kernel", "range(0, n_cols, BLOCK):\n        cols = start", "range(0, n_cols - BLOCK, BLOCK):\n        cols = start"),
    Fault("persistent-softmax/fp32-64x781", "softmax.persistent_softmax_kernel", "tl.num_programs(0)", "tl.num_programs(0) + 1"),
    # normalisation
    Fault("layer-norm/fp32-3x70", "kit.layer_norm.layer_norm_forward_kernel", "tl.where(inside, x - mean, 0.0)", "x - mean"),
    Fault("layer-norm/bf16-33x257", "kit.layer_norm.layer_norm_forward_kernel", "* weight + bias", "* weight - bias"),
    Fault("layer-norm-backward/fp32-33x257", "kit.layer_norm.layer_norm_backward_kernel", " - along_mean", ""),
    Fault("layer-norm-backward/fp16-33x257", "kit.layer_norm.layer_norm_backward_kernel", "dweight += dy * normalised", "dweight += dy * x"),
    Fault("layer-norm-backward/bf16-33x257", "kit.layer_norm.layer_norm_reduce_kernel", "groups[:, None] < n_groups", "groups[:, None] < n_groups - 1"),
    Fault("rms-norm/fp32-3x70", "normalisation.rms_norm_kernel", "+ eps", "+ 0.01"),
    Fault("rms-norm/fp16-33x257", "normalisation.rms_norm_kernel", "/ n_cols", "/ BLOCK"),
    # products
    Fault("matmul/fp32-17x33x65", "kit.matmul.matmul_kernel", "mask=ks[None, :] < left", "mask=ks[None, :] <= left"),
    Fault("matmul/fp32-512x512x512", "kit.matmul.matmul_kernel", "a = tl.load(a_ptrs, mask=ks[None, :] < left, other=0.0)", "a = tl.load(a_ptrs, mask=ks[None, :] < left, other=0.0).to(tl.bfloat16).to(tl.float32)"),
    Fault("matmul/fp16-130x67x96", "kit.matmul.matmul_kernel", "out_cols[None, :] < N", "out_cols[None, :] < N - 1"),
    Fault("matmul/fp64-72x100x88-nt", "kit.matmul.matmul_kernel", "dtype=ACCUMULATOR", "dtype=ACCUMULATOR) + tl.full((BLOCK_M, BLOCK_N), 1e-9, ACCUMULATOR"),
    Fault("matmul/i8-128x128x128", "kit.matmul.matmul_kernel", "for step in range(0,", "for step in range(1,"),
    Fault("matmul/fp8e4nv-17x33x65", "kit.matmul.matmul_kernel", "b_ptrs += BLOCK_K * stride_bk", "b_ptrs += BLOCK_K * stride_bn"),
    Fault("matmul/fp8e5-130x67x96", "kit.matmul.matmul_kernel", "(pid % group_size) // rows_in_group", "(pid % group_size) // GROUP_M"),
    Fault("matmul/bf16-65x96x80-leaky-relu", "kit.matmul.leaky_relu", "0.01 * x", "0.02 * x"),
    Fault("matmul/fp32-96x96x200-tf32", "kit.matmul.matmul_kernel", "tl.dot(a, b,", "tl.dot(a.to(tl.float8e5).to(tl.float32), b,"),
    Fault("batched-matmul/fp32-3x33x20x70", "batched.batched_matmul_kernel", "b_ptr + batch * stride_bb", "b_ptr"),
    Fault("batched-matmul/i8-7x16x48x31", "batched.batched_matmul_kernel", "(k[None, :] < K)", "(k[None, :] < K - 1)"),
    Fault("grouped-matmul/fp16-four", "batched.grouped_matmul_kernel", "done += tiles", "done += tiles + 1"),
    Fault("grouped-matmul/fp32-four", "batched.grouped_matmul_kernel", "% tiles_n * TILE", "% tiles * TILE"),
    Fault("split-k-matmul/fp32-33x20x300-3", "batched.split_k_kernel", "SPLIT * DEPTH", "SPLIT * DEPTH + DEPTH"),
    Fault("split-k-matmul/i8-64x64x512-8", "batched.split_k_kernel", "tl.atomic_add(", "tl.store("),
    Fault("split-k-matmul/bf16-33x20x300-3", "batched.zero_kernel", "tl.zeros((BLOCK,), out_ptr.dtype.element_ty)", "tl.full((BLOCK,), 1, out_ptr.dtype.element_ty)"),
    Fault("persistent-matmul/fp32-100x70x50", "persistent.persistent_matmul_kernel", "tl.cdiv(M, TILE) * tiles_n", "M // TILE * tiles_n"),
    Fault("tuned-matmul/fp16-65x130x70", "kit.matmul.matmul_kernel", "K - step * BLOCK_K", "K - 1 - step * BLOCK_K"),
    Fault("tuned-sum/fp32-1000", "persistent.tuned_sum_kernel", "other=0.0", "other=1.0"),
    Fault("triangular-matmul/fp32-100x65", "triangular.triangular_matmul_kernel", "k[None, :] <= rows[:, None]", "k[None, :] < rows[:, None]"),
    Fault("scaled-matmul/i8-33x20x70-to-fp32", "quantised.scaled_matmul_kernel", "* b_scale[None, :]", ""),
    Fault("scaled-matmul/fp8e5-33x20x70-to-bf16", "quantised.scaled_matmul_kernel", "a_ptr + rows[:, None] * K", "a_ptr + rows[:, None] // 2 * K"),
    Fault("int4-matmul/fp16-33x20x70", "quantised.int4_matmul_kernel", "(k[:, None] % 2) * 4", "(1 - k[:, None] % 2) * 4"),
    Fault("int4-matmul/bf16-16x65x128", "quantised.int4_matmul_kernel", "start // GROUP * N", "0 * N"),
    Fault("convolution/fp32-2x7x9x5-3x3x6-stride1-pad1", "convolution.convolution_kernel", "y >= 0", "y > 0"),
    Fault("convolution/fp16-1x11x8x17-5x2x33-stride2-pad2", "convolution.convolution_kernel", "k // channels % S", "k // channels % R"),
    # attention
    Fault("attention/fp32-3x77x32", "attention.attention_forward_kernel", "accumulator * shrink[:, None]", "accumulator"),
    Fault("attention/bf16-2x64x64-causal", "attention.scores", "rows[:, None] >= cols[None, :]", "rows[:, None] > cols[None, :] - 2"),
    Fault("attention/fp16-3x77x32", "attention.scores", "cols[None, :] < n_keys", "cols[None, :] < n_keys + 1"),
    Fault("attention-backward/fp32-3x77x32-causal", "attention.attention_backward_kv_kernel", "ds = p * (dp - delta[:, None])", "ds = p * dp"),
    Fault("attention-backward/bf16-2x64x64", "attention.attention_backward_q_kernel", "(dp - delta[:, None]) * scale", "(dp - delta[:, None])"),
    Fault("attention-backward/fp16-1x100x128-causal", "attention.attention_delta_kernel", "tl.sum(out * dout, axis=1)", "tl.sum(out * out, axis=1)"),
    # losses
    Fault("cross-entropy/fp32-5x11", "losses.cross_entropy_kernel", "cols == target", "cols == target + 1"),
    Fault("cross-entropy/bf16-17x1000", "losses.cross_entropy_kernel", "tl.log(total) + top", "tl.log2(total) + top"),
    Fault("giou-loss/fp32-3x77", "kit.giou.giou_loss_kernel", "tl.where(valid, loss, 0.0)", "loss"),
    Fault("giou-loss/bf16-4x1100", "kit.giou.giou_loss_kernel", "count += valid.to(tl.int32)", "count += inside.to(tl.int32)"),
    Fault("dropout/fp32-1025-p0.25-seed123456789", "kit.dropout.dropout_kernel", "tl.rand(seed, offsets)", "tl.rand(seed + 1, offsets)"),
    Fault("dropout/fp16-5000-p0.9-seed7", "kit.dropout.dropout_kernel", "x / (1.0 - p)", "x"),
    # others
    Fault("rotary/fp32-5x3x34", "rotary.rotary_kernel", "x * cos - y * sin", "x * cos + y * sin"),
    Fault("rotary/bf16-9x6x80", "rotary.rotary_kernel", "second = first + half", "second = first + HALF"),
    Fault("prefix-sum/fp32-20000", "scans.scan_totals_kernel", " - totals", ""),
    Fault("prefix-sum/i32-513", "scans.add_totals_kernel", "out + tl.load", "out - tl.load"),
    Fault("prefix-sum/fp64-513", "scans.scan_tiles_kernel", "total_ptr + tile, tl.sum(x, axis=0)", "total_ptr + tile, tl.max(x, axis=0)"),
    Fault("sums/fp32-17x100", "scans.sums_kernel", "rows_ptr + rows, tl.sum(x, axis=1)", "rows_ptr + rows, tl.max(x, axis=1)"),
    Fault("sums/fp16-100x17", "scans.sums_kernel", "down += ", "down = "),
    Fault("sort/fp32-3x37-ascending", "kit.rows.sort_kernel", "other=padding", "other=0"),
    Fault("sort/i16-2x256-descending", "kit.rows.sort_kernel", "descending=DESCENDING", "descending=not DESCENDING"),
    Fault("top-k/fp16-3x37-top4", "sorting.top_k_kernel", "tl.topk(x, K)", "tl.topk(-x, K)"),
    Fault("top-k/i32-2x256-top16", "sorting.top_k_kernel", "tl.argmax(x, axis=0)", "tl.argmax(x, axis=0, tie_break_left=False) + 1"),
    Fault("histogram/i32-1000-16bins", "sorting.histogram_kernel", "x >= 0", "x >= 1"),
    Fault("histogram/i32-5000-256bins", "sorting.histogram_kernel", "tl.atomic_add(", "tl.store("),
    Fault("triangle/fp32-70x33-lower-minus5", "triangular.triangle_kernel", "rows[:, None] <= diagonal", "rows[:, None] < diagonal"),
    Fault("triangle/i8-64x64-upper-3", "triangular.triangle_kernel", "rows[:, None] >= diagonal", "rows[:, None] >= 0"),
    Fault("band-sums/fp32-77-within9", "triangular.band_sums_kernel", "cols <= row + width", "cols <= row + width + 1"),
    Fault("transpose/fp64-33x70", "movement.transpose_kernel", "rows[:, None] * n_cols + cols[None, :]", "rows[:, None] * n_cols"),
    Fault("transpose/fp8e5-64x5", "movement.transpose_kernel", "(cols[:, None] < n_cols) & (rows", "(cols[:, None] < n_cols - 1) & (rows"),
    Fault("embedding/fp32-100x70-37", "movement.embedding_kernel", "mask=rows < n, other=0", "mask=rows < n - 1, other=0"),
    Fault("embedding-backward/bf16-3x16-200", "movement.embedding_backward_kernel", "tl.atomic_add(", "tl.store("),
)  # fmt: skip
"""Each of them is a mistake that somebody makes, in a compiler or in a kernel."""


def kernel(name: str) -> Any:
    """The compiled function of a fault, without what tunes it."""
    module, _, attribute = name.rpartition(".")
    room = (
        "triton_porting_kit.kernels"
        if module.startswith("kit.")
        else "triton_porting_kit.conformance.kernels"
    )
    found = getattr(importlib.import_module(f"{room}.{module.removeprefix('kit.')}"), attribute)
    while not hasattr(found, "_unsafe_update_src"):
        found = found.fn
    return found


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """The kernel with its text changed, and whoever calls it compiled again."""
    changed = kernel(fault.kernel)
    module = importlib.import_module(changed.__module__)
    family = [v for v in vars(module).values() if hasattr(v, "_unsafe_update_src")]
    text = changed.src
    assert fault.old in text, f"{fault.kernel} has no {fault.old!r}"

    def become(source: str) -> None:
        changed._unsafe_update_src(source)
        for function in [changed, *family]:
            function.hash = None
            function.used_global_vals.clear()
            function.device_caches.clear()

    become(text.replace(fault.old, fault.new))
    try:
        yield
    finally:
        become(text)
