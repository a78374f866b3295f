"""Matrix products as Triton templates: on this device there is no library to choose instead."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._inductor import config, utils
from torch._inductor.lowering import lowerings

from triton_porting_kit.pytorch.accelerator import accelerator

_aten = torch.ops.aten

_PRODUCTS: dict[Any, int] = {_aten.mm: 0, _aten.bmm: 0, _aten.addmm: 1, _aten.baddbmm: 1}
"""The operators, and the position of the first matrix among the arguments."""

_TEMPLATE_TYPES = (torch.float16, torch.bfloat16, torch.float32)
"""The types of Inductor's templates: ``torch._inductor.utils.use_triton_template``."""


def register() -> None:
    """Wrap the lowerings of the products, and register the configurations of the templates."""
    for packet, first in _PRODUCTS.items():
        for operator in (packet, packet.default):
            lowerings[operator] = _for_device(packet, first, lowerings[operator])
    _register_heuristics()


def _for_device(packet: Any, first: int, lower: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(lower)
    def lower_product(*args: Any, **kwargs: Any) -> Any:
        left, right = args[first : first + 2]
        if left.get_device().type != accelerator().name:
            return lower(*args, **kwargs)
        sizes = [*left.get_size(), *right.get_size()]
        if left.get_dtype() in _TEMPLATE_TYPES and all(_is_positive(size) for size in sizes):
            tunes = config.max_autotune or config.max_autotune_gemm
            with config.patch({**_TEMPLATES_ONLY, **_WHOLE}), _first_only(not tunes), _decided_anew():
                return lower(*args, **kwargs)
        if left.get_dtype().is_complex:
            return lower(*args, **kwargs)
        return _as_sum(packet, first, args, kwargs)

    return lower_product


_TEMPLATES_ONLY: Any = {"max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON"}
"""Inductor's other choice, the operator itself, is code of the same templates."""

_lowering = threading.local()


@contextmanager
def _first_only(only: bool) -> Iterator[None]:
    """A context in which a template has its first configuration, if `only`."""
    before = getattr(_lowering, "first_only", False)
    _lowering.first_only = only
    try:
        yield
    finally:
        _lowering.first_only = before


_WHOLE = {"triton.num_decompose_k_splits": 0}
"""Keeps Inductor from splitting long sums in pieces, for which this device has no configuration."""


@contextmanager
def _decided_anew() -> Iterator[None]:
    """Inductor (2.13) remembers whether it splits, and not that the setting was another one."""
    decide: Any = utils.use_decompose_k_choice
    decide.cache_clear()
    try:
        yield
    finally:
        decide.cache_clear()


def _is_positive(size: Any) -> bool:
    from torch._inductor.virtualized import V

    return bool(V.graph.sizevars.statically_known_gt(size, 0))


def _as_sum(packet: Any, first: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The product as a sum of products of elements: for types that no template has, and for empty matrices.

    Integers are scaled by integers, as on the CPU.
    """
    left, right = args[first : first + 2]
    rank = len(left.get_size())
    dtype = left.get_dtype()
    terms = lowerings[_aten.mul](
        lowerings[_aten.unsqueeze](left, rank), lowerings[_aten.unsqueeze](right, rank - 2)
    )
    product = lowerings[_aten.sum](terms, [rank - 1], dtype=dtype)
    if not first:
        return product
    alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
    if not dtype.is_floating_point:
        alpha, beta = int(alpha), int(beta)
    if alpha != 1:
        product = lowerings[_aten.mul](product, alpha)
    if beta == 0:
        return product
    added = args[0] if beta == 1 else lowerings[_aten.mul](args[0], beta)
    return lowerings[_aten.add](added, product)


def _register_heuristics() -> None:
    """Give the templates the configurations that they have on CPUs: small tiles, which fit any scratchpad."""
    importlib.import_module("torch._inductor.template_heuristics.triton")  # registers those of CPUs
    registry = importlib.import_module("torch._inductor.template_heuristics.registry")
    name = accelerator().name
    for (template, device, operator), heuristic in list(registry._TEMPLATE_HEURISTIC_REGISTRY.items()):
        if device == "cpu":
            registry._TEMPLATE_HEURISTIC_REGISTRY[template, name, operator] = _first_of(heuristic)


def _first_of(heuristic: Any) -> type:
    class FirstConfiguration(heuristic):  # type: ignore[misc]
        """The first configuration only, unless the program asked for autotuning."""

        def get_template_configs(self, kernel_inputs: Any, op_name: str) -> Any:
            found = super().get_template_configs(kernel_inputs, op_name)
            return list(found)[:1] if getattr(_lowering, "first_only", False) else found

    return FirstConfiguration
