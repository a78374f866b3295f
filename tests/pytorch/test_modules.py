"""Modules that move to the device and back."""

from __future__ import annotations

from typing import Any

import torch
from host_backend import NAME


class Tied(torch.nn.Module):
    """An embedding and a head with the same weight, as language models have."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(7, 4)
        self.head = torch.nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(tokens))


def test_shared_parameters_stay_shared(chip: Any) -> None:
    torch.manual_seed(0)
    host = Tied()
    device = Tied()
    device.load_state_dict(host.state_dict())
    device.to(NAME)
    assert device.head.weight is device.embedding.weight
    tokens = torch.tensor([1, 5, 5])
    host(tokens).square().sum().backward()
    device(tokens.to(NAME)).square().sum().backward()
    torch.testing.assert_close(device.head.weight.grad.cpu(), host.head.weight.grad)
    device.to("cpu")
    assert device.head.weight is device.embedding.weight
    assert device.head.weight.grad.device.type == "cpu"
    device.double()
    assert device.head.weight is device.embedding.weight
    assert len(list(device.parameters())) == 1
