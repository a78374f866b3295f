"""Linear layers of bf16 on the CPU: oneDNN adds the bias and computes GELU while it multiplies.

For `aten.addmm`, torch copies the bias to every row of the result first, which oneDNN then reads. Inductor itself uses
oneDNN's operator with a bias and a function for constant weights only (``freezing``). Both round once; as addition and
function in a Triton kernel, the product would be rounded to bf16 first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.pattern_matcher import CallFunction, KeywordArg, Match, register_graph_pattern

from triton_porting_kit.pytorch.cpu import is_ours

_aten, _convert = torch.ops.aten, torch.ops.prims.convert_element_type.default
_linear = torch.ops.mkldnn._linear_pointwise.default
_LAST_PASSES = 2
"""The index of Inductor's last patterns over a graph, where the products of its other patterns are final."""


def register() -> None:
    """Register the patterns with Inductor, and the lowering of the operator for weights that are no constants."""
    if not torch.backends.mkldnn.is_available():
        return
    from torch._inductor.fx_passes import post_grad

    plain = _product()
    patterns: list[tuple[Any, Callable[..., None]]] = [
        (plain, _replace),
        (_gelu(plain), _replace_with_gelu),
        (_gelu(CallFunction(_aten.reshape.default, plain, KeywordArg("shape"))), _replace_with_gelu),
    ]
    for pattern, replace in patterns:
        add: Any = register_graph_pattern(
            pattern,
            extra_check=_is_linear,
            pass_dict=post_grad.pass_patterns[_LAST_PASSES],
        )
        add(replace)
    _lower_any_weight()


def _product() -> Any:
    return CallFunction(_aten.addmm.default, KeywordArg("bias"), KeywordArg("x"), KeywordArg("weight"))


def _gelu(x: Any) -> Any:
    """GELU by the error function, as Inductor's decomposition writes it for bf16."""
    wide = CallFunction(_convert, x, torch.float32, _users=2)
    scaled = CallFunction(_aten.mul.Tensor, wide, 0.7071067811865476)
    weight = CallFunction(_aten.add.Tensor, CallFunction(_aten.erf.default, scaled), 1)
    product = CallFunction(_aten.mul.Tensor, CallFunction(_aten.mul.Tensor, wide, 0.5), weight)
    return CallFunction(_convert, product, torch.bfloat16)


def _is_linear(match: Match) -> bool:
    """Whether the product is that of a linear layer of bf16 whose code the kit generates the rest of."""
    if config.cpu_backend != "triton" or config.max_autotune or config.max_autotune_gemm:
        return False
    bias, x, weight = (match.kwargs[name].meta["val"] for name in ("bias", "x", "weight"))
    if x.device.type != "cpu" or {bias.dtype, x.dtype, weight.dtype} != {torch.bfloat16} or bias.dim() != 1:
        return False
    [product] = (node for node in match.nodes if node.target is _aten.addmm.default)
    factors = [product.kwargs.get(name, 1) for name in ("alpha", "beta")]
    as_a_layer_has_it = weight.stride() == (1, weight.shape[0])
    empty = any(isinstance(size, int) and size == 0 for size in (*x.shape, *weight.shape))
    if factors != [1, 1] or empty or not as_a_layer_has_it:
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) and is_ours()


def _replace(match: Match, bias: Any, x: Any, weight: Any) -> None:
    def linear(bias: Any, x: Any, weight: Any) -> Any:
        return _linear(x, weight.permute(1, 0), bias, "none", [], "")

    match.replace_by_example(linear, [bias, x, weight])


def _replace_with_gelu(match: Match, bias: Any, x: Any, weight: Any, shape: Any = None) -> None:
    def linear(bias: Any, x: Any, weight: Any) -> Any:
        result = _linear(x, weight.permute(1, 0), bias, "gelu", [], "none")
        return result if shape is None else _aten.reshape.default(result, shape)

    match.replace_by_example(linear, [bias, x, weight])


def _lower_any_weight() -> None:
    """Let Inductor call the operator with any weight: its own lowering asserts that it is a constant (torch 2.13)."""
    from torch._inductor import ir, mkldnn_ir
    from torch._inductor.lowering import lowerings
    from torch._inductor.virtualized import V

    lower = lowerings[_linear]

    @functools.wraps(lower)
    def patched(x: Any, w: Any, b: Any, attr: Any, scalars: Any, algorithm: Any, layout: Any = None) -> Any:
        constant = isinstance(w.data, ir.StorageBox) and w.get_name() in V.graph.constants
        if constant or not is_ours() or config.cpu_backend != "triton":
            return lower(x, w, b, attr, scalars, algorithm, layout)
        return ir.TensorBox.create(mkldnn_ir.LinearUnary.create(x, w, b, attr, scalars, algorithm))

    lowerings[_linear] = patched
