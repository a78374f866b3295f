"""Operators that the level treats in a way of their own, with reasons."""

from __future__ import annotations

UNSPECIFIED = {
    "empty": "memory is not initialised",
    "empty_like": "memory is not initialised",
    "empty_permuted": "memory is not initialised",
    "empty_strided": "memory is not initialised",
    "new_empty": "memory is not initialised",
    "new_empty_strided": "memory is not initialised",
}
"""Only shape and type of results are compared."""

NOT_UNIQUE = {
    "linalg.eig": "eigenvectors have any phase",
    "linalg.eigh": "eigenvectors have any sign",
    "linalg.svd": "singular vectors have any sign",
    "pca_lowrank": "singular vectors have any sign",
    "svd": "singular vectors have any sign",
    "svd_lowrank": "singular vectors have any sign",
}
"""Results depend on the library that computes them: beside the CPU, only shape and type are compared."""

STATISTICS = {
    "_batch_norm_with_update": "mean and deviation of 16-bit inputs",
    "_native_batch_norm_legit": "mean and deviation of 16-bit inputs",
    "native_batch_norm": "mean and deviation of 16-bit inputs",
    "native_layer_norm": "mean and deviation of 16-bit inputs",
}
"""Results after the first that torch has in float32 beside the CPU, as its meta kernels say, and in 16 bits there."""

TIES = {
    "argsort": "the order of equal elements is not specified",
    "kthvalue": "any of several equal elements may be named",
    "median": "any of several equal elements may be named",
    "mode": "any of several equal elements may be named",
    "nanmedian": "any of several equal elements may be named",
    "sort": "the order of equal elements is not specified",
    "topk": "any of several equal elements may be named",
}
"""If elements of the input are equal, only shape and type of the indices are compared; the values are compared."""

ON_HOST = {"tensor_split": "torch refuses places of splits that are not on the CPU"}
"""Only the input of these is moved to the device."""

_NO_CPU = "torch has no CPU operator, with which results could be compared"
_FLOAT8 = "it takes 8-bit floats only, which are none of the level's types"
SKIPPED = {
    "nn.functional.batch_norm.without_cudnn": _NO_CPU,
    "torch._scaled_mm": _FLOAT8,
    "torch._scaled_mm_v2": _FLOAT8,
    "torch.ops.aten._efficient_attention_forward": _NO_CPU,
    "torch.ops.aten._flash_attention_forward": _NO_CPU,
}
"""Operators (with their variant) without checks."""

INDUCTOR_ON_CPU = {
    r"invalid operands of type pointer<\w+> and": (
        "Inductor passes CPU tensors without dimensions to Triton kernels as numbers, also if it then updates them in "
        "place through a pointer: its code mixes both"
    ),
}
"""Messages of failures of Inductor's Triton code for the CPU, which its C++ code cannot have, with their causes."""
