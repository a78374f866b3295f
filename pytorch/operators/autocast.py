"""Autocast: the types that operators compute in under ``torch.autocast(NAME)``.

The policies and the operators that have them are those of torch's own devices: ``ATen/autocast_mode.h``. All other
operators take their arguments as they are. Unlike torch's devices, a weight is cast again at each use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_iter, tree_map_only

from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.pytorch.operators.registry import outside_dynamo

KEY = "AutocastPrivateUse1"

LOWER_PRECISION = """
_convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm
chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
_scaled_dot_product_flash_attention scaled_dot_product_attention
"""
"""Operators that compute in autocast's type."""

FLOAT32 = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor
pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim
cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss
smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss
multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d
_upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d _upsample_nearest_exact3d
upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d
_upsample_bicubic2d_aa
"""
"""Operators that compute in float32."""

FLOAT32_RESULT = """
prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
linalg_matrix_norm.str_ord sum sum.dim_IntList
"""
"""Operators whose parameter ``dtype`` is float32 if the program does not give it."""

APPENDED = {"norm.Scalar": "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim": "norm.ScalarOpt_dim_dtype"}
"""Operators without the parameter ``dtype``, and the overload that has it as its last one. It is float32."""

PROMOTED = """
addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add
"""
"""Operators that compute in float32 if an argument has it, and in autocast's type otherwise."""

REFUSED = """
binary_cross_entropy
"""
"""Operators that lose their accuracy in autocast's type, and raise an error."""

_Policy = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

_library = torch.library.Library("aten", "IMPL")
_others = torch.library.Library("_", "IMPL")
_AUTOCAST = torch._C.DispatchKeySet(torch._C._dispatch_key_parse(KEY))


def register() -> None:
    """Register the policies with torch's dispatcher."""
    _others.fallback(torch.library.fallthrough_kernel, KEY)
    for names, policy in (
        (LOWER_PRECISION, _lower_precision),
        (FLOAT32, _float32),
        (FLOAT32_RESULT, _float32_result),
        (" ".join(APPENDED), _appended),
        (PROMOTED, _promoted),
        (REFUSED, _refused),
    ):
        for name in names.split():
            _library.impl(name, outside_dynamo(_kernel(operator(name), policy)), KEY)


def operator(name: str) -> Any:
    """The overload of aten with a name such as ``pow.Scalar``, or ``mm`` for the default one."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _kernel(target: Any, policy: _Policy) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
            return policy(target, args, kwargs)

    return call


def _lower_precision(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _cast_call(target, args, kwargs, _autocast_type())


def _float32(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _cast_call(target, args, kwargs, torch.float32)


def _float32_result(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if _is_eligible(args[0]):
        position = [argument.name for argument in target._schema.arguments].index("dtype")
        if position < len(args):
            if args[position] is None:
                args = (*args[:position], torch.float32, *args[position + 1 :])
        elif kwargs.get("dtype") is None:
            kwargs = kwargs | {"dtype": torch.float32}
    return target(*args, **kwargs)


def _appended(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    arguments = target._schema.arguments
    given = dict(zip((argument.name for argument in arguments), args, strict=False)) | kwargs
    values = [given.get(argument.name, argument.default_value) for argument in arguments]
    wanted = torch.float32 if _is_eligible(args[0]) else args[0].dtype
    return operator(APPENDED[target.name().removeprefix("aten::")])(*values, dtype=wanted)


def _promoted(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    widest = _autocast_type()
    for value in tree_iter((args, kwargs)):
        if _is_eligible(value) and value.dtype != widest:
            if torch.float32 not in (widest, value.dtype):
                raise RuntimeError(f"{target} was passed {value.dtype} under autocast to {widest}")
            widest = torch.float32
    return _cast_call(target, args, kwargs, widest)


def _refused(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise RuntimeError(
        f"{target} is unsafe to autocast. Use binary_cross_entropy_with_logits, or BCEWithLogitsLoss, which takes the "
        "values before the sigmoid; or disable autocast for this part of the program"
    )


def _autocast_type() -> torch.dtype:
    return torch.get_autocast_dtype(accelerator().name)


def _is_eligible(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.device.type != accelerator().name:
        return False
    return value.dtype.is_floating_point and value.dtype != torch.float64


def _cast_call(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> Any:
    def cast(value: torch.Tensor) -> torch.Tensor:
        return value.to(dtype) if _is_eligible(value) else value

    args, kwargs = tree_map_only(torch.Tensor, cast, (args, kwargs))
    return target(*args, **kwargs)
