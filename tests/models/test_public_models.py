"""Public models, compiled: a training step gives the loss, the outputs and the gradients of torch's CPU."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from triton_porting_kit.conformance.torch import oracle

pytestmark = pytest.mark.models
transformers = pytest.importorskip("transformers")

import torch  # noqa: E402
from public import MODELS  # noqa: E402


@pytest.mark.parametrize("name", MODELS)
def test_compiled_for_the_device(device: str, name: str) -> None:
    module = torch.get_device_module(device)
    check(name, device, None, module.reset_fallbacks)
    assert module.fallbacks() == {}


INDUCTORS_OWN = {
    "EfficientNet": "the gradient of average pools with ceil_mode: https://github.com/pytorch/pytorch/issues/198119"
}
"""Models whose gradients Inductor gets wrong on the CPU, with its C++ as well. The kit's devices do not."""


def on_the_cpu(name: str) -> Any:
    marks = [pytest.mark.xfail(strict=True, reason=INDUCTORS_OWN[name])] if name in INDUCTORS_OWN else []
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [on_the_cpu(name) for name in MODELS])
def test_compiled_to_triton_for_the_cpu(name: str) -> None:
    check(name, "cpu", {"cpu_backend": "triton"}, lambda: None)


def check(name: str, device: str, options: dict[str, Any] | None, begin: Any) -> None:
    torch.manual_seed(0)
    model, data = MODELS[name].make(), MODELS[name].data()
    same = step(model, data, "cpu", torch.float32, lambda call: call)
    wide = step(model, data, "cpu", torch.float64, lambda call: call)
    begin()
    found = step(model, data, device, torch.float32, lambda call: torch.compile(call, options=options))
    assert found.keys() == same.keys()
    for what, value in found.items():
        comparison = oracle.compare(value, same[what], wide[what])
        assert not comparison.differ, f"{what}: {comparison}"


def step(
    model: Any, data: dict[str, Any], device: str, kind: torch.dtype, compiler: Any
) -> dict[str, torch.Tensor]:
    """The outputs and the gradients of a training step. A parameter without a gradient has one of zeros."""
    model = copy.deepcopy(model).to(device, kind)
    result = compiler(model)(**{name: place(value, device, kind) for name, value in data.items()})
    result.loss.backward()
    logits = result.logits if "logits" in result else result.logits_per_image
    gradients = {
        f"gradient of {name}": torch.zeros_like(p) if p.grad is None else p.grad
        for name, p in model.named_parameters()
    }
    return {"loss": result.loss.detach(), "logits": logits.detach(), **gradients}


def place(value: Any, device: str, kind: torch.dtype) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device, kind) if value.is_floating_point() else value.to(device)
