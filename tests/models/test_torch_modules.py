"""The modules of ``torch.nn`` with the inputs of torch's own tests: outputs and gradients are those of torch's CPU."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from triton_porting_kit.conformance.torch import oracle

pytestmark = pytest.mark.models
torch = pytest.importorskip("torch")

from torch.testing._internal.common_modules import module_db  # noqa: E402
from torch.testing._internal.common_utils import set_rng_seed  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map_only  # noqa: E402

RANDOM = {"nn.RReLU", "nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d"}
"""Modules that draw random numbers, of which devices have others."""

INTEGERS = {"nn.SoftMarginLoss"}
"""Modules that have no gradient by one of their floating-point inputs."""

MODULES = {
    info.name: info
    for info in module_db
    if info.name not in RANDOM | INTEGERS and not any(word in info.name for word in ("Lazy", "Dropout"))
}


@pytest.mark.parametrize("name", MODULES)
def test_eager(device: str, name: str) -> None:
    set_rng_seed(0)
    info = MODULES[name]
    sample = next(
        iter(
            info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=True, training=False
            )
        )
    )
    made = sample.constructor_input
    module = info.module_cls(*made.args, **made.kwargs).eval()
    same = run(module, sample.forward_input, "cpu", torch.float32)
    wide = run(module, sample.forward_input, "cpu", torch.float64)
    found = run(module, sample.forward_input, device, torch.float32)
    for number, values in enumerate(zip(found, same, wide, strict=True)):
        comparison = oracle.compare(*values)
        assert not comparison.differ, f"result {number}: {comparison}"


def run(module: Any, inputs: Any, device: str, kind: Any) -> list[Any]:
    """The outputs, and the gradients by inputs and parameters."""
    module = copy.deepcopy(module).to(device, kind)

    def place(value: Any) -> Any:
        value = value.detach()
        return value.to(device, kind).requires_grad_() if value.is_floating_point() else value.to(device)

    args, kwargs = tree_map_only(torch.Tensor, place, (inputs.args, inputs.kwargs))
    results = [each for each in tree_leaves(module(*args, **kwargs)) if isinstance(each, torch.Tensor)]
    roots = [each.square().sum() for each in results if each.requires_grad]
    if roots:
        sum(roots).backward()
    leaves = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
    leaves = [each for each in leaves if each.is_floating_point()] + list(module.parameters())
    return [each.detach() for each in results] + [
        torch.zeros_like(each) if each.grad is None else each.grad for each in leaves
    ]
