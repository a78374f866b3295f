"""The last part of `tpk demo`: a small transformer trains on the backend's torch device, and beside it on the CPU."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

STEPS = 12
SHOWN = (1, 2, 4, 8, 12)
"""Steps whose losses are printed."""
TOLERANCE = 1e-3
"""The largest difference of two losses, relative to the CPU's. Both are float32, and sums run in other orders."""

_WORDS, _LENGTH, _WIDTH, _HEADS, _BATCH = 32, 16, 32, 2, 8
_RATE = 0.3


@dataclass(frozen=True)
class Training:
    """The losses of the steps, and what they took."""

    device: str
    losses: list[float]
    expected: list[float]
    """The CPU's losses."""
    compile_seconds: float
    """The first step, which compiles."""
    step_seconds: float
    """The mean of the other steps."""
    fallbacks: dict[str, int]
    """Calls that ran on the CPU, by operator."""

    @property
    def ok(self) -> bool:
        """Whether the losses are the CPU's, and fall."""
        close = all(abs(a - b) <= TOLERANCE * abs(b) for a, b in zip(self.losses, self.expected, strict=True))
        return close and self.losses[-1] < self.losses[0]


def torch_device_of(driver: Any) -> str | None:
    """The torch device of its own that a backend has in this process. None without torch, or on the CPU."""
    try:
        import torch
    except ImportError:
        return None
    name = str(getattr(driver, "torch_device", "cpu"))
    return name if name == torch._C._get_privateuse1_backend_name() else None


def train(device: str) -> Training:
    """Train the same network on the device, by ``torch.compile``, and on the CPU, eager."""
    import torch

    torch.manual_seed(0)
    host = _network()
    words = torch.randint(0, _WORDS, (_BATCH, _LENGTH + 1))
    chip = copy.deepcopy(host).to(device)
    module = torch.get_device_module(device)
    module.reset_fallbacks()
    losses, seconds = _steps(torch.compile(chip), chip, words.to(device))
    fallbacks = module.fallbacks()
    expected, _ = _steps(host, host, words)
    return Training(device, losses, expected, seconds[0], sum(seconds[1:]) / len(seconds[1:]), fallbacks)


def _steps(call: Any, network: Any, words: Any) -> tuple[list[float], list[float]]:
    """The losses of the steps, and their seconds."""
    import torch

    optimizer = torch.optim.SGD(network.parameters(), lr=_RATE)
    losses, seconds = [], []
    for _ in range(STEPS):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = call(words)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.item()))
        seconds.append(time.perf_counter() - start)
    return losses, seconds


def _network() -> Any:
    """A transformer of one layer that predicts the next word; its result is the loss."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(_WORDS, _WIDTH)
            self.places = nn.Parameter(torch.randn(_LENGTH, _WIDTH) * 0.1)
            self.before, self.after = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
            self.inputs, self.output = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)
            self.inner = nn.Sequential(
                nn.Linear(_WIDTH, 4 * _WIDTH), nn.GELU(), nn.Linear(4 * _WIDTH, _WIDTH)
            )
            self.head = nn.Linear(_WIDTH, _WORDS)

        def forward(self, words: Any) -> Any:
            x = self.words(words[:, :-1]) + self.places
            heads = self.inputs(self.before(x)).unflatten(-1, (3, _HEADS, -1)).transpose(1, 3)
            query, key, value = heads.unbind(2)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.output(mixed.transpose(1, 2).flatten(2))
            x = x + self.inner(self.after(x))
            return functional.cross_entropy(self.head(x).flatten(0, 1), words[:, 1:].flatten())

    return Network()


def show(console: Console, found: Training) -> None:
    """Print the losses."""
    table = Table(title=f"Training a transformer on torch.device({found.device!r})", box=SIMPLE)
    for heading in ("step", f"loss, torch.compile on {found.device}", "loss, torch on the CPU"):
        table.add_column(heading, justify="right")
    for step in SHOWN:
        table.add_row(str(step), f"{found.losses[step - 1]:.5f}", f"{found.expected[step - 1]:.5f}")
    console.print(table)
    used = ", ".join(f"{name} ({count})" for name, count in sorted(found.fallbacks.items()))
    console.print(
        f"compiled in {found.compile_seconds:.0f} s, then {found.step_seconds * 1e3:.0f} ms a step; "
        f"operators on the CPU: {used or 'none'}",
        highlight=False,
    )
    if not found.ok:
        console.print(f"the losses differ by more than {TOLERANCE:g}, or do not fall", style="bold red")
