"""Cells of LSTMs and GRUs. ``torch.nn`` calls these operators on devices that may have one kernel for a cell.

Each function is made of other operators of torch, so that eager and Inductor run it on the device. What the forward
operator keeps for the backward one, its last result, is defined here alone.

Gates are N x (4 or 3 times H): input, forget, cell and output; reset, update and new. 16-bit types are computed in
float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from triton_porting_kit.pytorch.operators.registry import implements

_Optional = torch.Tensor | None


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _biased(gates: torch.Tensor, bias: _Optional) -> torch.Tensor:
    return _wide(gates) if bias is None else _wide(gates) + _wide(bias)


@implements("_thnn_fused_lstm_cell")
def lstm_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cx: torch.Tensor,
    input_bias: _Optional = None,
    hidden_bias: _Optional = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The hidden state, the state of the cell, and the gates after their functions for `lstm_cell_backward`."""
    gates = _biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)
    into, forget, cell, out = gates.chunk(4, 1)
    into, forget, cell, out = into.sigmoid(), forget.sigmoid(), cell.tanh(), out.sigmoid()
    cy = forget * _wide(cx) + into * cell
    hy = out * cy.tanh()
    dtype = cx.dtype
    return hy.to(dtype), cy.to(dtype), torch.cat([into, forget, cell, out], 1).to(dtype)


@implements("_thnn_fused_lstm_cell_backward_impl")
def lstm_cell_backward(
    grad_hy: _Optional,
    grad_cy: _Optional,
    cx: torch.Tensor,
    cy: torch.Tensor,
    workspace: torch.Tensor,
    has_bias: bool,
) -> tuple[_Optional, _Optional, _Optional]:
    """The gradients of the gates, of the cell's old state, and of each bias."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    into, forget, cell, out = _wide(workspace).chunk(4, 1)
    squashed = _wide(cy).tanh()
    by_hidden = torch.zeros_like(squashed) if grad_hy is None else _wide(grad_hy)
    by_cell = by_hidden * out * (1 - squashed * squashed)
    if grad_cy is not None:
        by_cell = by_cell + _wide(grad_cy)
    gates = [
        by_cell * cell * into * (1 - into),
        by_cell * _wide(cx) * forget * (1 - forget),
        by_cell * into * (1 - cell * cell),
        by_hidden * squashed * out * (1 - out),
    ]
    by_gates = torch.cat(gates, 1).to(workspace.dtype)
    return by_gates, (by_cell * forget).to(cx.dtype), by_gates.sum(0) if has_bias else None


@implements("_thnn_fused_gru_cell")
def gru_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    hx: torch.Tensor,
    input_bias: _Optional = None,
    hidden_bias: _Optional = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The hidden state, and what `gru_cell_backward` needs: three gates, the old state and the hidden part."""
    from_input = _biased(input_gates, input_bias).chunk(3, 1)
    from_hidden = _biased(hidden_gates, hidden_bias).chunk(3, 1)
    reset = (from_input[0] + from_hidden[0]).sigmoid()
    update = (from_input[1] + from_hidden[1]).sigmoid()
    new = (from_input[2] + reset * from_hidden[2]).tanh()
    old = _wide(hx)
    workspace = torch.cat([reset, update, new, old, from_hidden[2]], 1)
    return (new + update * (old - new)).to(hx.dtype), workspace.to(hx.dtype)


@implements("_thnn_fused_gru_cell_backward")
def gru_cell_backward(
    grad_hy: torch.Tensor, workspace: torch.Tensor, has_bias: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, _Optional, _Optional]:
    """The gradients of both gates, of the old state, and of both biases."""
    reset, update, new, old, hidden = _wide(workspace).chunk(5, 1)
    gradient = _wide(grad_hy)
    by_update = gradient * (old - new) * (1 - update) * update
    by_new = gradient * (1 - update) * (1 - new * new)
    by_reset = by_new * hidden * (1 - reset) * reset
    dtype = workspace.dtype
    by_input = torch.cat([by_reset, by_update, by_new], 1).to(dtype)
    by_hidden = torch.cat([by_reset, by_update, by_new * reset], 1).to(dtype)
    biases = (by_input.sum(0), by_hidden.sum(0)) if has_bias else (None, None)
    return by_input, by_hidden, (gradient * update).to(dtype), *biases


COMPOSED: dict[str, Callable[..., Any]] = {
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
}
"""What Inductor compiles in place of these operators. Tensors without memory need it, too, where torch has nothing."""
