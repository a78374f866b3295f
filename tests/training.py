"""Training of the suite's networks, step by step, on a torch device and on the CPU."""

from __future__ import annotations

import copy
from typing import Any

OPTIMIZERS = {"decoder": ("AdamW", {"lr": 1e-3}), "convolutions": ("SGD", {"lr": 0.01, "momentum": 0.9})}
"""The networks that are trained, and how."""

TIMES = 8.0
"""Times the error of the CPU's float32 that a loss may have."""

ROUNDING = 1.3e-6
"""What a loss may differ beside that, relative to it: the tolerance of torch's own tests in float32."""


def check(name: str, device: str, steps: int) -> None:
    """Train compiled on a device. Each loss is that of the CPU within rounding, and no operator runs on the CPU."""
    import torch

    from triton_porting_kit.conformance.torch.networks import NETWORKS

    torch.manual_seed(0)
    kind: Any = NETWORKS[name]
    network, data = kind(), kind.data()
    exact = _losses(name, copy.deepcopy(network).double(), [_wide(x) for x in data], steps, compiles=False)
    near = _losses(name, copy.deepcopy(network), data, steps, compiles=False)
    module = torch.get_device_module(device)
    network, data = network.to(device), [x.to(device) for x in data]
    module.reset_fallbacks()
    found = _losses(name, network, data, steps, compiles=True)
    assert module.fallbacks() == {}
    assert exact[-1] < exact[0]
    error = 0.0
    for step, (ours, same, wide) in enumerate(zip(found, near, exact, strict=True)):
        error = max(error, abs(same - wide))
        assert abs(ours - wide) <= TIMES * error + ROUNDING * abs(wide), (
            f"step {step}: {ours}, {same}, {wide}"
        )


def _wide(value: Any) -> Any:
    return value.double() if value.is_floating_point() else value


def _losses(name: str, network: Any, data: Any, steps: int, *, compiles: bool) -> list[float]:
    import torch

    kind, settings = OPTIMIZERS[name]
    optimizer = getattr(torch.optim, kind)(network.parameters(), **settings)
    function = torch.compile(network.loss) if compiles else network.loss
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = function(*data)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [float(loss) for loss in losses]
