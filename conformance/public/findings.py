"""Faults of published kernels that someone looked at: a program for each, and the line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A fault, worded for the maintainers of the package."""

    collection: str
    title: str
    place: str
    """File and line in the pinned release."""
    text: str
    """What happens, why, and what would mend it."""
    program: str
    """A program for CUDA that shows it; `tpk run --as-cuda` runs it on a CPU."""
    kernel: str = ""
    """The kernel, if the checks name no line."""


FINDINGS = (
    Finding(
        "liger",
        "The gradient of a token-level `luspo` loss reads behind the end of a tensor",
        "liger_kernel/ops/grpo_loss.py:474",
        "For `luspo`, `backward` makes `dloss` of shape (B, 1), but the kernel reads an element for each of the B x L "
        "tokens. Gradients are wrong from the second token on. Sequence-level weights multiply by the mask first and "
        "are right; `dloss = (...).expand(B, L).contiguous()` would mend the other branch.",
        """import torch
from liger_kernel.ops import GrpoLossFunction

logits = torch.randn(2, 17, 256, device="cuda", requires_grad=True)
tokens = torch.randint(0, 256, (2, 16), device="cuda")
old, advantages = torch.full((2, 16), -5.5, device="cuda"), torch.ones(2, device="cuda")
loss = GrpoLossFunction.apply(
    logits, old, None, tokens, advantages, None, 1.0, 0.0, 0.2, 0.2, False, "luspo"
)[0]
loss.backward()
""",
    ),
    Finding(
        "torchao",
        "`triton_to_mxfp8_dim1` writes scales behind the end of its output",
        "torchao/prototype/mx_formats/kernels.py:746",
        "The store of `col_scale_e8m0` has no mask. With a tile of more rows than the tensor has (128 rows), "
        "scales are written beyond the tensor; on a CPU this corrupts the heap. They are also written over the scales "
        "of other columns, so that results depend on the order in which programs run. The store needs the mask of the "
        "values' store.",
        """import torch
from torchao.prototype.mx_formats.kernels import triton_to_mxfp8_dim1

triton_to_mxfp8_dim1(torch.randn(128, 256, device="cuda", dtype=torch.bfloat16), 32, "floor")
""",
        kernel="to_mxfp8_dim1_kernel",
    ),
    Finding(
        "flag_gems",
        "`argmin` over the last dimension takes elements of the next row",
        "flag_gems/ops/argmin.py:88",
        "`argmin_kernel_opt_k1` loads with `mask=True`. Rows that are no multiple of the block continue into the "
        "next row, "
        "and the last row into memory behind the tensor: the index may be as large as the block. `argmax` masks.",
        """import torch
import flag_gems

x = torch.randn(64, 500, device="cuda")
assert (flag_gems.ops.argmin(x, 1) < 500).all()
""",
    ),
    Finding(
        "flag_gems",
        "`bitwise_left_shift` and `bitwise_right_shift` cannot be called",
        "flag_gems/ops/bitwise_left_shift.py:19",
        "Both pass their default `out=None` on to a function of `pointwise_dynamic`, which takes it for a tensor.",
        """import torch
import flag_gems

x = torch.arange(8, device="cuda")
flag_gems.ops.bitwise_left_shift(x, x)
""",
    ),
    Finding(
        "sageattention",
        "Keys beyond the end of a sequence take part in the softmax",
        "sageattention/attn_qk_int8_per_block.py:19",
        "Keys are loaded under a mask, but scores of lanes outside of it are not set to minus infinity, so that "
        "each counts "
        "as a key of zeros. With 150 keys, results are about 15 % too small. Lengths that are multiples of 64 are "
        "right. "
        "The kernels for widths of 96 and for sequences of varying length have the same line.",
        """import torch
from sageattention import sageattn

q, k, v = (torch.randn(1, 2, 150, 64, device="cuda", dtype=torch.float16) for _ in range(3))
exact = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float())
found = sageattn(q, k.clone(), v).float()
print("scale of the results:", ((found * exact).sum() / (exact * exact).sum()).item())
""",
    ),
    Finding(
        "sageattention",
        "Causal attention reads scales behind the end of `K_scale`",
        "sageattention/attn_qk_int8_per_block_causal.py:24",
        "The loop over keys runs to the end of the block of 128 queries. Where that lies behind the last key, "
        "scales of "
        "blocks that do not exist are loaded. The scores are masked afterwards, so that only the access is wrong.",
        """import torch
from sageattention import sageattn

q, k, v = (torch.randn(1, 2, 150, 64, device="cuda", dtype=torch.float16) for _ in range(3))
sageattn(q, k, v, is_causal=True)
""",
    ),
    Finding(
        "torchnorm",
        "`FusedAddRMSNorm` rounds the residual to bfloat16, whatever its type is",
        "torchnorm/_triton.py:122",
        "The sum is stored as `h.to(tl.bfloat16)`. For float32 and float16, the returned residual has 8 bits of "
        "precision. "
        "`h.to(R_OUT.dtype.element_ty)` would keep the type.",
        """import torch
from torchnorm._triton import fused_add_rms_norm

x, w = torch.randn(4, 64, device="cuda"), torch.ones(64, device="cuda")
print("error of the sum:", (fused_add_rms_norm(x, x, w, 1e-6)[1] - 2 * x).abs().max().item())
""",
    ),
    Finding(
        "conch",
        "`scaled_gemm` reads behind the end of its operands",
        "conch/kernels/quantization/gemm.py:344",
        "Tiles of B are loaded without a mask. With N = 96 and tiles of 64 columns, the last tile reads 32 "
        "columns that do "
        "not exist. The results are right, because these columns are not stored.",
        """import torch
from conch.ops.quantization.gemm import scaled_gemm

a = torch.ones(64, 128, device="cuda", dtype=torch.int8)
b = torch.ones(96, 128, device="cuda", dtype=torch.int8).T
scale = torch.ones(1, device="cuda")
scaled_gemm(a, b, scale, scale, torch.bfloat16)
""",
    ),
    Finding(
        "lightllm",
        "`matmul_dequantize_int4_s2` reads behind the end of its operands, and adds what it finds",
        "lightllm/common/basemodel/triton_kernel/dequantize_gemm_int4.py:277",
        "Blocks of K are loaded without a mask. Where `BLOCK_SIZE_K * SPLIT_K`, which is up to 1024, does not divide "
        "K, the last block reads behind the end of all four operands, and the products of what is there are added. "
        "Whether the results are right depends on the configuration that autotuning picks.",
        """import torch
from lightllm.common.basemodel.triton_kernel.dequantize_gemm_int4 import matmul_dequantize_int4_s2

x = torch.randn(1, 256, device="cuda")
w = torch.zeros(256 // 8, 128, dtype=torch.int32, device="cuda")
s = torch.ones(2, 128, device="cuda")
z = torch.zeros(2, 128 // 8, dtype=torch.int32, device="cuda")
print(matmul_dequantize_int4_s2(x, w, s, z, 128))
""",
    ),
)
"""Those of the pinned releases, seen on the CPU backend."""
