"""Small networks with the layers of large ones. Importing this module imports torch.

A network's `loss` trains it; `forward` is inference. Dimensions are small, and none of them is a power of two where
none has to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

_VOCABULARY = 97


class Attention(nn.Module):
    """Self-attention of several heads, with an optional cache of keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Any, mask: Any, cache: Any = None, position: Any = None) -> Any:
        """`cache`: keys and values of all positions, into which those at `position` are written."""
        batch, length, width = x.shape
        parts = self.queries_keys_values(x).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        if cache is not None:
            keys = cache[0].index_copy_(2, position, keys.to(cache.dtype)).to(queries.dtype)
            values = cache[1].index_copy_(2, position, values.to(cache.dtype)).to(queries.dtype)
        found = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return self.out(found.transpose(1, 2).reshape(batch, length, width))


class RMSNorm(nn.Module):
    """Division by the root mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


class DecoderLayer(nn.Module):
    """A layer with root mean square norms and SwiGLU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = RMSNorm(width), RMSNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.gate = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Any, mask: Any, cache: Any = None, position: Any = None) -> Any:
        x = x + self.attention(self.first(x), mask, cache, position)
        inner = self.second(x)
        return x + self.down(functional.silu(self.gate(inner)) * self.up(inner))


class Decoder(nn.Module):
    """A causal transformer; inference keeps keys and values and adds a token at a time."""

    length, steps, heads, width = 7, 3, 4, 60

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_VOCABULARY, self.width)
        self.layers = nn.ModuleList(DecoderLayer(self.width, self.heads) for _ in range(2))
        self.norm, self.head = RMSNorm(self.width), nn.Linear(self.width, _VOCABULARY, bias=False)

    @classmethod
    def data(cls) -> tuple[Any, ...]:
        return (torch.randint(_VOCABULARY, (2, cls.length + cls.steps)),)

    def step(self, tokens: Any, position: Any, caches: Any) -> Any:
        """The logits of the last of some tokens at consecutive positions."""
        x = self.embedding(tokens)
        every = torch.arange(self.length + self.steps, device=tokens.device)
        mask = every[None, :] <= position[:, None]
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, mask, cache, position)
        return self.head(self.norm(x[:, -1]))

    def forward(self, tokens: Any) -> Any:
        whole = self.length + self.steps
        shape = (2, 2, tokens.shape[0], self.heads, whole, self.width // self.heads)
        caches = torch.zeros(shape, device=tokens.device, dtype=self.head.weight.dtype).unbind(0)
        ends = [0, *range(self.length, whole + 1)]
        found = []
        for begin, end in pairwise(ends):
            position = torch.arange(begin, end, device=tokens.device)
            found.append(self.step(tokens[:, begin:end], position, caches))
        return torch.stack(found)

    def loss(self, tokens: Any) -> Any:
        x = self.embedding(tokens[:, :-1])
        every = torch.arange(x.shape[1], device=tokens.device)
        for layer in self.layers:
            x = layer(x, every[None, :] <= every[:, None])
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), tokens[:, 1:].flatten())


class Encoder(nn.Module):
    """A transformer with layer norms, GELU and padded sequences, which classifies."""

    def __init__(self) -> None:
        super().__init__()
        width = 48
        self.embedding, self.positions = nn.Embedding(_VOCABULARY, width), nn.Embedding(11, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.attentions = nn.ModuleList(Attention(width, 3) for _ in range(2))
        self.inner = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 90), nn.GELU(), nn.Linear(90, width)) for _ in range(2)
        )
        self.head = nn.Linear(width, 5)

    @classmethod
    def data(cls) -> tuple[Any, ...]:
        return torch.randint(_VOCABULARY, (3, 11)), torch.tensor([11, 4, 7]), torch.randint(5, (3,))

    def forward(self, tokens: Any, lengths: Any, labels: Any) -> Any:
        every = torch.arange(tokens.shape[1], device=tokens.device)
        there = every[None, :] < lengths[:, None]
        x = self.embedding(tokens) + self.positions(every)
        for number, (attention, inner) in enumerate(zip(self.attentions, self.inner, strict=True)):
            x = self.norms[2 * number](x + attention(x, there[:, None, None, :]))
            x = self.norms[2 * number + 1](x + inner(x))
        kept = x.masked_fill(~there[..., None], 0)
        return self.head(kept.sum(1) / lengths[:, None])

    def loss(self, tokens: Any, lengths: Any, labels: Any) -> Any:
        return functional.cross_entropy(self(tokens, lengths, labels), labels, label_smoothing=0.1)


class Convolutions(nn.Module):
    """Convolutions with batch norms, strides, groups and pooling, which classify images."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 12, 3, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, stride=2, padding=1, groups=3),
            nn.BatchNorm2d(24),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(24, 7),
        )

    @classmethod
    def data(cls) -> tuple[Any, ...]:
        return torch.randn(4, 3, 14, 14), torch.randint(7, (4,))

    def forward(self, images: Any, labels: Any) -> Any:
        return self.body(images)

    def loss(self, images: Any, labels: Any) -> Any:
        return functional.cross_entropy(self.body(images), labels)


class Recurrent(nn.Module):
    """An LSTM of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(10, 18, 2, batch_first=True), nn.Linear(18, 3)

    @classmethod
    def data(cls) -> tuple[Any, ...]:
        return torch.randn(4, 9, 10), torch.randn(4, 3)

    def forward(self, x: Any, wanted: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])

    def loss(self, x: Any, wanted: Any) -> Any:
        return functional.mse_loss(self(x, wanted), wanted)


class Residual(nn.Module):
    """A block of a diffusion model: group norms, SiLU, and a time that is added to the channels."""

    def __init__(self, channels: int, out: int, time: int) -> None:
        super().__init__()
        self.first, self.second = nn.GroupNorm(4, channels), nn.GroupNorm(4, out)
        self.into, self.over = nn.Conv2d(channels, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
        self.time, self.skip = nn.Linear(time, out), nn.Conv2d(channels, out, 1)

    def forward(self, x: Any, time: Any) -> Any:
        inner = self.into(functional.silu(self.first(x))) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.over(functional.silu(self.second(inner)))


class Diffusion(nn.Module):
    """A UNet of one level down and up, with attention at the bottom; predicts noise."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Conv2d(3, 12, 3, padding=1)
        self.down, self.bottom, self.up = Residual(12, 24, 16), Residual(24, 24, 16), Residual(36, 12, 16)
        self.shrink = nn.Conv2d(24, 24, 3, stride=2, padding=1)
        self.attention, self.out = Attention(24, 2), nn.Conv2d(12, 3, 3, padding=1)

    @classmethod
    def data(cls) -> tuple[Any, ...]:
        return torch.randn(2, 3, 12, 12), torch.tensor([3.0, 250.0]), torch.randn(2, 3, 12, 12)

    def forward(self, images: Any, times: Any, noise: Any) -> Any:
        rates = torch.exp(torch.arange(8, device=times.device, dtype=times.dtype) * (-math.log(1e4) / 8))
        time = torch.cat([torch.sin(times[:, None] * rates), torch.cos(times[:, None] * rates)], 1)
        first = self.into(images)
        x = self.bottom(self.shrink(self.down(first, time)), time)
        flat = x.flatten(2).transpose(1, 2)
        x = x + self.attention(flat, None).transpose(1, 2).view_as(x)
        x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        return self.out(self.up(torch.cat([x, first], 1), time))

    def loss(self, images: Any, times: Any, noise: Any) -> Any:
        return functional.mse_loss(self(images, times, noise), noise)


class Experts(nn.Module):
    """A mixture of experts: each token goes through two of five."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(20, 5, bias=False)
        self.up, self.down = (
            nn.Parameter(torch.randn(5, 20, 34) / 5),
            nn.Parameter(torch.randn(5, 34, 20) / 6),
        )

    @classmethod
    def data(cls) -> tuple[Any, ...]:
        return torch.randn(13, 20), torch.randn(13, 20)

    def forward(self, x: Any, wanted: Any) -> Any:
        with torch.autocast(
            x.device.type, enabled=False
        ):  # which experts are chosen must not depend on the type
            scores = self.router(x).softmax(-1)
            weights, chosen = scores.topk(2, -1)
            mixture = torch.zeros_like(scores).scatter(1, chosen, weights / weights.sum(-1, keepdim=True))
        inner = functional.gelu(torch.einsum("tw,ewi->eti", x, self.up))
        return torch.einsum("eti,eiw,te->tw", inner, self.down, mixture)

    def loss(self, x: Any, wanted: Any) -> Any:
        return functional.mse_loss(self(x, wanted), wanted)


NETWORKS: dict[str, Callable[[], Any]] = {
    "decoder": Decoder,
    "encoder": Encoder,
    "convolutions": Convolutions,
    "lstm": Recurrent,
    "diffusion": Diffusion,
    "experts": Experts,
}
"""By the name that checks have."""
