"""Recurrent layers on the device, forward and backward, against those of the CPU."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from host_backend import NAME
from torch import nn


def states(kind: type, rows: tuple[int, ...]) -> Any:
    hidden = torch.randn(*rows, 3)
    return (hidden, torch.randn(*rows, 3)) if kind in (nn.LSTM, nn.LSTMCell) else hidden


def run(layer: Any, x: torch.Tensor, state: Any) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The new states, and the gradients of a function of them by the parameters and by the state."""
    state = torch.utils._pytree.tree_map(lambda each: each.detach().requires_grad_(), state)
    found = torch.utils._pytree.tree_leaves(layer(x, state))
    sum(each.square().sum() for each in found).backward()
    leaves = [*layer.parameters(), *torch.utils._pytree.tree_leaves(state)]
    return found, [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTMCell], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("bias", "compiles"), [(False, False), (True, False), (True, True)])
def test_cells(chip: Any, kind: type, bias: bool, compiles: bool) -> None:
    check(chip, kind(4, 3, bias=bias), torch.randn(2, 4), states(kind, (2,)), compiles)


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM], ids=lambda kind: kind.__name__)
def test_layers(chip: Any, kind: type) -> None:
    check(chip, kind(4, 3), torch.randn(5, 2, 4), states(kind, (1, 2)), False)


def check(chip: Any, host: Any, x: torch.Tensor, state: Any, compiles: bool) -> None:
    device = copy.deepcopy(host).to(NAME)
    expected = run(host, x, state)
    chip.reset_fallbacks()
    layer = torch.compile(device, fullgraph=True) if compiles else device
    found = run(layer, x.to(NAME), torch.utils._pytree.tree_map(lambda each: each.to(NAME), state))
    for ours, theirs in zip(found[0] + found[1], expected[0] + expected[1], strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, atol=1e-5, rtol=1e-5)
    assert chip.fallbacks() == {}
