"""Matrix multiplication: grouped tiles, pointer increments along K, float32 accumulator."""

from __future__ import annotations

from typing import Any, NamedTuple

import triton
import triton.language as tl

from .arrays import Array, check_shape, dtype_name, element_strides, empty
from .tuning import Tuned


class Tiles(NamedTuple):
    """Sizes of one program's work: output rows and columns, K step, and tile rows per group."""

    block_m: int = 64
    block_n: int = 64
    block_k: int = 32
    group_m: int = 8

    def constexprs(self) -> dict[str, int]:
        """The kernel's compile-time arguments."""
        return {name.upper(): value for name, value in self._asdict().items()}


DEFAULT_TILES = Tiles()

# From small tiles, which occupy all cores on small matrices, to large ones, which reuse loaded data more often.
TUNED_TILES = (
    Tiles(32, 32, 32),
    Tiles(64, 64, 32),
    Tiles(128, 64, 32),
    Tiles(128, 64, 64),
    Tiles(128, 128, 32, 16),
    Tiles(128, 128, 64, 16),
    Tiles(128, 128, 128),
    Tiles(128, 256, 64, 16),
    Tiles(256, 128, 128),
)


@triton.jit
def leaky_relu(x):
    """x if it is not negative, else x / 100."""
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    LEAKY_RELU: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    ACCUMULATOR: tl.constexpr = tl.float32,
    PRECISION: tl.constexpr = "ieee",
):
    """C = A @ B for A of M by K and B of K by N; each program makes one BLOCK_M by BLOCK_N tile of C.

    PRECISION "ieee": float32 inputs are not rounded to tf32, even if the hardware could do so.
    """
    # Programs walk down GROUP_M rows of tiles before they move to the next column: neighbours in time share
    # tiles of A and B in the cache.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    group_size = GROUP_M * tiles_n
    first_m = (pid // group_size) * GROUP_M
    rows_in_group = tl.minimum(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (pid % group_size) % rows_in_group
    pid_n = (pid % group_size) // rows_in_group

    # Rows and columns beyond the edge wrap around, so loads need no mask; the store masks them.
    rows = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    cols = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=ks[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=ks[:, None] < left, other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    if LEAKY_RELU:
        accumulator = leaky_relu(accumulator)
    out_rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    out_cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + out_rows[:, None] * stride_cm + out_cols[None, :] * stride_cn
    inside = (out_rows[:, None] < M) & (out_cols[None, :] < N)
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=inside)


tuned_matmul_kernel = Tuned(
    matmul_kernel,
    [triton.Config(tiles.constexprs(), num_warps=4, num_stages=2) for tiles in TUNED_TILES],
    key=["M", "N", "K"],
)


def matmul(
    a: Array,
    b: Array,
    *,
    leaky_relu: bool = False,
    tiles: Tiles | None = None,
    out: Array | None = None,
) -> Array:
    """a @ b for a of (M, K) and b of (K, N), any strides, both float32, float16, bfloat16 or int8.

    Accumulates in float32 and rounds once to the type of `a`; `leaky_relu` is applied before the rounding.
    Products of int8 are accumulated and returned as int32.
    Without `tiles` the kernel is autotuned once per (M, N, K) and type; otherwise it uses the given tiles. Raises
    ValueError if shapes do not match or types differ.
    """
    left, right = a.shape, b.shape
    if len(left) != 2 or len(right) != 2 or left[1] != right[0]:
        raise ValueError(f"shapes {tuple(left)} and {tuple(right)} are not (M, K) and (K, N)")
    if a.dtype != b.dtype:
        raise ValueError(f"a is {dtype_name(a)} and b is {dtype_name(b)}; give both one type")
    (m, k), n = left, right[1]
    integer = dtype_name(a) == "int8"
    if integer and leaky_relu:
        raise ValueError("leaky_relu needs floating-point operands")
    if out is None:
        out = empty((m, n), a, "int32" if integer else None)
    else:
        check_shape("out", out, (m, n))
    if m == 0 or n == 0:
        return out

    def grid(meta: dict[str, Any]) -> tuple[int]:
        # Without triton.cdiv, which takes 2 µs here; a 512x512 product takes only 300 µs.
        return (-(-m // meta["BLOCK_M"]) * -(-n // meta["BLOCK_N"]),)

    strides = (*element_strides(a), *element_strides(b), *element_strides(out))
    tuned_matmul_kernel.launch(
        (m, n, k, a.dtype),
        None if tiles is None else tiles.constexprs(),
        grid,
        a, b, out, m, n, k, *strides,
        LEAKY_RELU=leaky_relu,
        ACCUMULATOR=tl.int32 if integer else tl.float32,
    )  # fmt: skip
    return out
