"""Cells of LSTMs and GRUs: torch calls fused operators on such devices, which only CUDA has.

Each function is made of other operators of torch, so that eager and Inductor run it on the device. What the forward
operator keeps for the backward one, its last result, is defined here alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from triton_porting_kit.pytorch.operators.registry import implements

Optional = torch.Tensor | None


@implements("_thnn_fused_lstm_cell")
def lstm_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cx: torch.Tensor,
    input_bias: Optional = None,
    hidden_bias: Optional = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The hidden state, the cell state, and the values of the gates."""
    gates = _sum(input_gates, hidden_gates, input_bias, hidden_bias)
    into, forget, candidate, out = gates.chunk(4, 1)
    into, forget, candidate, out = into.sigmoid(), forget.sigmoid(), candidate.tanh(), out.sigmoid()
    cy = forget * cx + into * candidate
    return out * cy.tanh(), cy, torch.cat([into, forget, candidate, out], 1)


@implements("_thnn_fused_lstm_cell_backward_impl")
def lstm_cell_backward(
    grad_hy: Optional,
    grad_cy: Optional,
    cx: torch.Tensor,
    cy: torch.Tensor,
    workspace: torch.Tensor,
    has_bias: bool,
) -> tuple[Optional, Optional, Optional]:
    """The gradients by the gates before their functions, by the cell state, and by each bias."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    into, forget, candidate, out = workspace.chunk(4, 1)
    reached = cy.tanh()
    by_cell = torch.zeros_like(cy) if grad_cy is None else grad_cy
    by_out = torch.zeros_like(cy)
    if grad_hy is not None:
        by_cell = by_cell + grad_hy * out * (1 - reached * reached)
        by_out = grad_hy * reached
    parts = [
        by_cell * candidate * _slope(into),
        by_cell * cx * _slope(forget),
        by_cell * into * (1 - candidate * candidate),
        by_out * _slope(out),
    ]
    by_gates = torch.cat(parts, 1)
    return by_gates, by_cell * forget, by_gates.sum(0) if has_bias else None


@implements("_thnn_fused_gru_cell")
def gru_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    hx: torch.Tensor,
    input_bias: Optional = None,
    hidden_bias: Optional = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The hidden state; and the gates, the old state, and the hidden part of the new one."""
    input_reset, input_update, input_new = _sum(input_gates, input_bias).chunk(3, 1)
    hidden_reset, hidden_update, hidden_new = _sum(hidden_gates, hidden_bias).chunk(3, 1)
    reset, update = (input_reset + hidden_reset).sigmoid(), (input_update + hidden_update).sigmoid()
    new = (input_new + reset * hidden_new).tanh()
    return new + update * (hx - new), torch.cat([reset, update, new, hx, hidden_new], 1)


@implements("_thnn_fused_gru_cell_backward")
def gru_cell_backward(
    grad_hy: torch.Tensor, workspace: torch.Tensor, has_bias: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Optional, Optional]:
    """The gradients by the gates of the input and of the state, by the state, and by each bias."""
    reset, update, new, hx, hidden_new = workspace.chunk(5, 1)
    by_new = grad_hy * (1 - update) * (1 - new * new)
    by_reset = by_new * hidden_new * _slope(reset)
    by_update = grad_hy * (hx - new) * _slope(update)
    by_input = torch.cat([by_reset, by_update, by_new], 1)
    by_hidden = torch.cat([by_reset, by_update, by_new * reset], 1)
    biases = (by_input.sum(0), by_hidden.sum(0)) if has_bias else (None, None)
    return by_input, by_hidden, grad_hy * update, *biases


def _sum(*values: Optional) -> torch.Tensor:
    result, *others = [value for value in values if value is not None]
    for value in others:
        result = result + value
    return result


def _slope(gate: torch.Tensor) -> torch.Tensor:
    """The derivative of the logistic function where it has the value `gate`."""
    return gate * (1 - gate)


COMPOSED: dict[str, Callable[..., Any]] = {
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
}
"""What Inductor compiles in place of these operators. Tensors without memory need it, too, where torch has nothing."""
