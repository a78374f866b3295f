"""The programs that `benchmarks.inductor` compiles: a table of models and patterns for PyTorch's CPU device."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Program:
    """A function or module and its arguments; `train` adds the gradients of everything that has one."""

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    train: bool = False

    def outputs(self, function: Callable[..., Any] | None = None) -> tuple[Tensor, ...]:
        """What a version of the function (itself by default) gives: results, then gradients."""
        found = (self.function if function is None else function)(*self.inputs)
        results = tuple(found) if isinstance(found, tuple | list) else (found,)
        if not self.train:
            return results
        # The gradient of a sum would be constant, and compilers would fold it.
        seeds = [torch.ones_like(results[0]) if results[0].dim() == 0 else self.seed(results[0])]
        return (*results, *torch.autograd.grad(results[:1], self.leaves(), seeds))

    def leaves(self) -> list[Tensor]:
        """The arguments and parameters that have gradients."""
        weights = list(self.function.parameters()) if isinstance(self.function, nn.Module) else []
        return [x for x in self.inputs if isinstance(x, Tensor) and x.requires_grad] + weights

    def exact(self) -> Program:
        """The same program in float64."""
        function = self.function
        if isinstance(function, nn.Module):
            function = copy.deepcopy(function).double()
        return Program(function, tuple(_double(x) for x in self.inputs), self.train)

    def seed(self, like: Tensor) -> Tensor:
        """The gradient of a result like this one: normally distributed numbers, always the same."""
        key = (tuple(like.shape), like.dtype)
        if key not in _seeds:
            generator = torch.Generator().manual_seed(1)
            _seeds[key] = torch.randn(like.shape, generator=generator).to(like.dtype)
        return _seeds[key]


_seeds: dict[Any, Tensor] = {}


def _double(x: Any) -> Any:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        return x
    return x.detach().double().requires_grad_(x.requires_grad)


@dataclass(frozen=True)
class Pattern:
    """A named program. `eager_bar` is the least that torch's eager time over ours may be."""

    name: str
    make: Callable[[], Program]
    quick: bool = False
    eager_bar: float | None = None


def patterns() -> list[Pattern]:
    """All patterns, in the order of the report."""
    return [
        *_elementwise(),
        *_normalisation(),
        *_reductions(),
        *_indexing(),
        *_images(),
        *_networks(),
    ]


def randn(*shape: int, grad: bool = False, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normally distributed numbers."""
    return torch.randn(*shape).to(dtype).requires_grad_(grad)


def _elementwise() -> Sequence[Pattern]:
    n = 1 << 24
    return [
        Pattern("element-wise 16M", lambda: Program(lambda x, y: (x * y + 1).relu(), (randn(n), randn(n)))),
        Pattern("GELU + residual 4M", lambda: Program(_gelu_residual, (randn(n // 4), randn(n // 4)))),
        Pattern("element-wise bf16 4M", lambda: Program(_silu_product, (_bf16(n // 4), _bf16(n // 4)))),
        Pattern("SwiGLU 2048x2048", lambda: Program(_silu_product, (randn(2048, 2048), randn(2048, 2048)))),
        Pattern(
            "rotary embedding",
            lambda: Program(_rotary, (randn(4, 512, 8, 64), randn(512, 1, 32), randn(512, 1, 32))),
            quick=True,
        ),
        Pattern(
            "Adam step 1M",
            lambda: Program(_adam, (*(randn(1 << 20) for _ in range(3)), randn(1 << 20).abs())),
        ),
        Pattern(
            "transposed sum 2048x2048",
            lambda: Program(lambda x, y: x.t().contiguous() + y, (randn(2048, 2048), randn(2048, 2048))),
        ),
        Pattern(
            "concatenate and scale",
            lambda: Program(lambda x, y: torch.cat([x, y], 1) * 2 + 1, (randn(2048, 512), randn(2048, 512))),
        ),
    ]


def _bf16(*shape: int) -> Tensor:
    return randn(*shape, dtype=torch.bfloat16)


def _gelu_residual(x: Tensor, y: Tensor) -> Tensor:
    return functional.gelu(x * 1.5 + 0.5) + y


def _silu_product(x: Tensor, y: Tensor) -> Tensor:
    return functional.silu(x) * y


def _rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _adam(weight: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    mean = mean * 0.9 + gradient * 0.1
    square = square * 0.999 + gradient * gradient * 0.001
    return weight - 1e-3 * (mean / 0.271) / ((square / 0.002997).sqrt() + 1e-8), mean, square


def _normalisation() -> Sequence[Pattern]:
    m, n = 4096, 1024
    return [
        Pattern(
            "layer norm + GELU",
            lambda: Program(_layer_norm_gelu, (randn(m, n), randn(n), randn(n))),
            quick=True,
        ),
        Pattern("layer norm fwd+bwd", lambda: Program(nn.LayerNorm(n), (randn(m, n, grad=True),), True)),
        Pattern("RMS norm", lambda: Program(_rms_norm, (randn(m, n), randn(n)))),
        Pattern(
            "RMS norm fwd+bwd",
            lambda: Program(_rms_norm, (randn(m, n, grad=True), randn(n, grad=True)), True),
        ),
        Pattern(
            "group norm fwd+bwd",
            lambda: Program(nn.GroupNorm(8, 64), (randn(8, 64, 56, 56, grad=True),), True),
        ),
        Pattern("softmax", lambda: Program(lambda x: x.softmax(-1), (randn(m, n),)), quick=True),
        Pattern("softmax bf16", lambda: Program(lambda x: x.softmax(-1), (_bf16(m, n),))),
        Pattern(
            "cross entropy fwd+bwd",
            lambda: Program(
                functional.cross_entropy,
                (randn(1024, 8192, grad=True), torch.randint(0, 8192, (1024,))),
                True,
            ),
        ),
    ]


def _layer_norm_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.gelu(functional.layer_norm(x, weight.shape, weight, bias))


def _rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


def _reductions() -> Sequence[Pattern]:
    m, n = 4096, 1024
    return [
        Pattern("sum of rows", lambda: Program(lambda x: (x * 2 + 1).sum(-1), (randn(m, n),))),
        Pattern("sum of columns", lambda: Program(lambda x: (x * 2 + 1).sum(0), (randn(m, n),))),
        Pattern("sum of everything", lambda: Program(lambda x: x.square().sum(), (randn(m, n),))),
        Pattern("variance of columns", lambda: Program(lambda x: x.var(0), (randn(m, n),))),
        Pattern("argmax of rows", lambda: Program(lambda x: x.argmax(-1), (randn(m, n),)), quick=True),
        Pattern("cumulative sum", lambda: Program(lambda x: x.cumsum(-1), (randn(m, n),))),
        Pattern("sort of rows", lambda: Program(lambda x: (x * 2).sort(-1).values, (randn(m, 256),))),
        Pattern("top 8 of rows", lambda: Program(lambda x: (x * 2).topk(8).values, (randn(m, 256),))),
    ]


def _indexing() -> Sequence[Pattern]:
    return [
        Pattern(
            "embedding fwd+bwd",
            lambda: Program(nn.Embedding(10000, 256), (torch.randint(0, 10000, (4096,)),), True),
        ),
        Pattern(
            "gather of experts",
            lambda: Program(_experts, (randn(4096, 512), torch.randint(0, 4096, (8192,)), randn(8192, 1))),
        ),
        Pattern(
            "scatter-add of edges",
            lambda: Program(
                lambda x, source, target: torch.zeros_like(x).index_add(0, target, x[source].relu()),
                (randn(4096, 128), *(torch.randint(0, 4096, (16384,)) for _ in range(2))),
            ),
        ),
    ]


def _experts(x: Tensor, index: Tensor, gate: Tensor) -> Tensor:
    chosen = x[index] * gate.sigmoid()
    return chosen.view(4096, 2, -1).sum(1)


def _images() -> Sequence[Pattern]:
    images = (8, 32, 56, 56)
    return [
        Pattern(
            "max pool", lambda: Program(lambda x: functional.max_pool2d(x.relu(), 3, 2, 1), (randn(*images),))
        ),
        Pattern(
            "average pool fwd+bwd",
            lambda: Program(
                lambda x: functional.avg_pool2d(x.relu(), 3, 2, 1), (randn(*images, grad=True),), True
            ),
        ),
        Pattern(
            "bilinear upsampling",
            lambda: Program(
                lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"), (randn(*images),)
            ),
        ),
        Pattern(
            "convolution", lambda: Program(_convolution().eval().requires_grad_(False), (randn(*images),))
        ),
        Pattern("convolution fwd+bwd", lambda: Program(_convolution(), (randn(*images, grad=True),), True)),
        Pattern("batch-norm CNN fwd+bwd", lambda: Program(_cnn(), (randn(8, 3, 64, 64),), True)),
    ]


def _convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU())


def _cnn() -> nn.Module:
    layers: list[nn.Module] = []
    for inner, outer in ((3, 32), (32, 64), (64, 64)):
        layers += [
            nn.Conv2d(inner, outer, 3, padding=1, bias=False),
            nn.BatchNorm2d(outer),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 8 * 8, 10))


class _Block(nn.Module):
    """A transformer block with pre-normalisation: attention in torch's own kernel, or written out."""

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v) if self.fused else _attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        hidden: Tensor = x + self.down(functional.gelu(self.up(self.norm2(x))))
        return hidden


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores: Tensor = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1)
    return scores @ v


def _block(train: bool, fused: bool = True, dtype: torch.dtype = torch.float32) -> Program:
    block = _Block(512, 8, fused).to(dtype)
    x = randn(4, 256, 512, dtype=dtype, grad=train)
    return Program(block if train else block.eval().requires_grad_(False), (x,), train)


def _networks() -> Sequence[Pattern]:
    heads = (4, 8, 512, 64)
    return [
        Pattern(
            "linear + bias + GELU",
            lambda: Program(
                nn.Sequential(nn.Linear(512, 2048), nn.GELU()).requires_grad_(False), (randn(1024, 512),)
            ),
        ),
        Pattern(
            "attention, written out",
            lambda: Program(_attention, (randn(*heads), randn(*heads), randn(*heads))),
        ),
        Pattern("transformer block", lambda: _block(False), quick=True),
        Pattern("transformer block fwd+bwd", lambda: _block(True)),
        Pattern("transformer block bf16", lambda: _block(False, dtype=torch.bfloat16), eager_bar=1.2),
        Pattern(
            "transformer block bf16, attention written out",
            lambda: _block(False, fused=False, dtype=torch.bfloat16),
            eager_bar=1.2,
        ),
    ]
