"""torchao: quantisation to 8-bit floats, and products of quantised operands."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public.entries import Collection, Known, Lazy, Table
from triton_porting_kit.conformance.public.inputs import integers, made, normal, uniform

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
mx: Any = Lazy("torchao.prototype.mx_formats.kernels")
block: Any = Lazy("torchao.kernel.blockwise_quantization")
intmm: Any = Lazy("torchao.kernel.intmm_triton")
T = Table()

X = {"x": normal(128, 256)}


def _e8m0(most: Any, mode: str) -> Any:
    """The exponent of a block's scale: of its largest element over 448 rounded up, or of that element less 8."""
    if mode == "rceil":
        return torch.ceil(torch.log2(most.double() / 448)).clamp(-127, 127)
    return torch.floor(torch.log2(most.double())) - 8


def _mxfp8(x: Any, mode: str) -> Any:
    """Values after both conversions, and biased exponents."""
    blocks = x.double().view(x.shape[0], -1, 32)
    scale = _e8m0(blocks.abs().amax(-1, keepdim=True), mode)
    codes = (blocks * torch.exp2(-scale)).clamp(-448, 448).float().to(torch.float8_e4m3fn)
    values = codes.double() * torch.exp2(scale)
    return values.flatten(1).to(x.dtype), (scale.squeeze(-1) + 127).to(torch.int64)


def _back(codes: Any, scale: Any) -> Any:
    """Values and biased exponents of what the package returns."""
    exponents = scale.view(torch.uint8).to(torch.int64)
    blocks = codes.float().reshape(codes.shape[0], -1, 32)
    values = blocks * torch.exp2(exponents.reshape(codes.shape[0], -1, 1).float() - 127)
    return values.flatten(1).to(torch.bfloat16), exponents.reshape(codes.shape[0], -1)


_UNMASKED = Known(
    "package",
    "scales are written behind the end of the output (torchao/prototype/mx_formats/kernels.py:746)",
)
for mode in ("rceil", "floor"):
    T.add(
        f"to_mxfp8_dim0_{mode}",
        lambda x, mode=mode: _back(*mx.triton_to_mxfp8_dim0(x, 32, mode)),
        lambda x, mode=mode: _mxfp8(x, mode),
        X,
        types=("bfloat16",),
    )
    T.add(
        f"to_mxfp8_dim1_{mode}",
        lambda x, mode=mode: _back(
            *(y if y.is_contiguous() else y.t() for y in mx.triton_to_mxfp8_dim1(x, 32, mode))
        ),
        lambda x, mode=mode: _mxfp8(x.T.contiguous(), mode),
        X,
        types=("bfloat16",),
        known={"*": _UNMASKED},
    )


def _rearranged(x: Any) -> Any:
    """The layout of block scales that cuBLAS documents: blocks of 128 x 4, of which 32 x 4 x 4 are turned."""
    rows, columns = x.shape
    padded = F.pad(x, (0, -columns % 4, 0, -rows % 128))
    blocks = padded.view(padded.shape[0] // 128, 4, 32, padded.shape[1] // 4, 4)
    return blocks.permute(0, 3, 2, 1, 4).reshape(padded.shape)


T.add(
    "mx_block_rearrange",
    lambda x: mx.triton_mx_block_rearrange(x),
    _rearranged,
    {"x": integers(500, 70, high=256, dtype="uint8")},
    types=("uint8",),
    large={"x": integers(8192, 512, high=256, dtype="uint8")},
    slow="68 % of the time is for loads of 4 bytes: a program reads 4 columns of 128 rows that are 512 bytes apart, "
    "and the next 63 programs the rows below; when a later column reads a cache line again, it has left L1 and L2, "
    "which keep such lines in an eighth of their sets",
)


def _per_block(x: Any, rows: int) -> Any:
    """Values after quantisation to e4m3 by the largest element of blocks of rows x 128, and the scales."""
    blocks = x.double().view(x.shape[0] // rows, rows, -1, 128).transpose(1, 2)
    scale = blocks.abs().amax((-1, -2), keepdim=True) / 448
    values = (blocks / scale).float().to(torch.float8_e4m3fn).double() * scale
    return values.transpose(1, 2).reshape(x.shape).to(x.dtype), scale.flatten(1).to(x.dtype)


def _scaled(found: Any, rows: int) -> Any:
    codes, scale = found
    spread = scale.repeat_interleave(rows, 0).repeat_interleave(128, 1)
    return codes.float() * spread, scale


T.add(
    "fp8_blockwise_act_quant",
    lambda x: _scaled(block.fp8_blockwise_act_quant(x), 1),
    lambda x: _per_block(x, 1),
    X,
    types=("float32", "bfloat16"),
    tolerance=20000.0,
    because="a quotient that is rounded in float32 may fall on the other side of a tie of e4m3: one of its steps",
)
T.add(
    "fp8_blockwise_weight_quant",
    lambda x: _scaled(block.fp8_blockwise_weight_quant(x), 128),
    lambda x: _per_block(x, 128),
    X,
    types=("float32", "bfloat16"),
    tolerance=20000.0,
    because="a quotient that is rounded in float32 may fall on the other side of a tie of e4m3: one of its steps",
)
E4M3 = made(lambda g: torch.randn(128, 256, generator=g).to(torch.float8_e4m3fn))


def _wide(x: Any, s: Any) -> Any:
    return x.to(s.dtype) * s.repeat_interleave(128, 0).repeat_interleave(128, 1)


T.add(
    "fp8_blockwise_weight_dequant",
    lambda x, s: block.fp8_blockwise_weight_dequant(x, s),
    _wide,
    {"x": E4M3, "s": uniform(1, 2, low=0.5, high=2.0)},
    types=("float32",),
)
T.add(
    "blockwise_fp8_gemm",
    lambda a, sa, b, sb: block.blockwise_fp8_gemm(a, sa, b, sb),
    lambda a, sa, b, sb: (a.to(sa.dtype) * sa.repeat_interleave(128, 1)) @ _wide(b, sb).T,
    {
        "a": E4M3,
        "sa": uniform(128, 2, low=0.5, high=2.0, dtype="float32"),
        "b": E4M3,
        "sb": uniform(1, 2, low=0.5, high=2.0, dtype="float32"),
    },
    types=("bfloat16",),
)
INT8 = {
    "a": integers(64, 128, low=-128, high=128, dtype="int8"),
    "b": integers(128, 96, low=-128, high=128, dtype="int8"),
}


def _with_a_config(kernel: str) -> Any:
    """One of the configurations that the package tries; trying all of them takes an hour on a CPU."""

    def call(a: Any, b: Any, *scales: Any) -> Any:
        kind = scales[0].dtype if scales else torch.int32
        c = torch.empty(a.shape[0], b.shape[1], dtype=kind, device=a.device)
        return getattr(intmm, kernel)(a, b, *scales, c, intmm.int8_mm_kernel_configs[0])

    return lambda **x: call(*x.values())


T.add(
    "int_matmul_kernel",
    _with_a_config("int_matmul_kernel"),
    lambda a, b: (a.double() @ b.double()).to(torch.int64),
    INT8,
    types=("int8",),
    eager=False,
)
T.add(
    "int_scaled_matmul_kernel",
    _with_a_config("int_scaled_matmul_kernel"),
    lambda a, b, s: (a.to(s.dtype) @ b.to(s.dtype)) * s,
    {**INT8, "s": uniform(64, 1, low=0.001, high=0.01)},
    types=("float32", "bfloat16"),
)

COLLECTION = Collection(
    name="torchao",
    package="torchao",
    version="0.18.0",
    licence="BSD-3-Clause",
    needs="torch 2.8 or later",
    environment={"TPK_CUDA_CAPABILITY": "10.0"},
    cuda="12.8",
    arranged="compute capability 10.0 and CUDA 12.8, without which it defines no kernels of its MX formats",
    entries=T.entries(),
)
