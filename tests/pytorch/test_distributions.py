"""Random numbers of the device: their distributions, their types, and the generator that decides them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from host_backend import NAME
from torch import distributions

COUNT = 20000

CONTINUOUS: dict[str, tuple[Callable[[torch.Tensor], Any], distributions.Distribution]] = {
    "uniform": (lambda x: x.uniform_(), distributions.Uniform(0, 1)),
    "uniform_between": (lambda x: x.uniform_(-2, 3), distributions.Uniform(-2, 3)),
    "normal": (lambda x: x.normal_(), distributions.Normal(0, 1)),
    "normal_scaled": (lambda x: x.normal_(-2, 3), distributions.Normal(-2, 3)),
    "normal_tensors": (
        lambda x: x.copy_(torch.normal(torch.full_like(x, 2), torch.full_like(x, 3))),
        distributions.Normal(2, 3),
    ),
    "exponential": (lambda x: x.exponential_(2), distributions.Exponential(2)),
    "cauchy": (lambda x: x.cauchy_(1, 2), distributions.Cauchy(1, 2)),
    "log_normal": (lambda x: x.log_normal_(0.5, 0.7), distributions.LogNormal(0.5, 0.7)),
}
"""How a tensor is filled, and torch's distribution of these numbers."""

LIMIT = 1.95
"""Of the statistic of Kolmogorov and Smirnov times the root of the count: 1 of 1000 seeds exceeds it."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(chip: Any, name: str, dtype: torch.dtype) -> None:
    fill, wanted = CONTINUOUS[name]
    torch.manual_seed(7)
    x = torch.zeros(COUNT, dtype=dtype, device=NAME)
    fill(x)
    found = x.cpu().double().sort().values
    steps = torch.arange(COUNT + 1, dtype=torch.float64) / COUNT
    reached = wanted.cdf(found)
    distance = max(float((reached - steps[:-1]).max()), float((steps[1:] - reached).max()))
    rounding = torch.finfo(dtype).eps * math.sqrt(COUNT)  # how far rounding moves numbers
    assert distance * math.sqrt(COUNT) < LIMIT + rounding
    assert chip.fallbacks() == {}


DISCRETE: dict[str, tuple[Callable[[torch.Tensor], Any], dict[int, float]]] = {
    "random_between": (lambda x: x.random_(-3, 5), dict.fromkeys(range(-3, 5), 1 / 8)),
    "random_to": (lambda x: x.random_(7), dict.fromkeys(range(7), 1 / 7)),
    "bernoulli": (lambda x: x.bernoulli_(0.3), {0: 0.7, 1: 0.3}),
    "bernoulli_tensor": (lambda x: x.bernoulli_(torch.tensor(0.3, device=NAME)), {0: 0.7, 1: 0.3}),
    "bernoulli_of": (
        lambda x: x.copy_(torch.full_like(x, 0.3, dtype=torch.float32).bernoulli()),
        {0: 0.7, 1: 0.3},
    ),
    "geometric": (lambda x: x.geometric_(0.25), {n: 0.25 * 0.75 ** (n - 1) for n in range(1, 40)}),
    "dropout": (lambda x: x.copy_(torch.native_dropout(x + 1.0, 0.75, True)[0]), {0: 0.75, 4: 0.25}),
    "multinomial": (
        lambda x: x.copy_(torch.multinomial(torch.tensor([1.0, 0, 3, 6], device=NAME), COUNT, True)),
        {0: 0.1, 2: 0.3, 3: 0.6},
    ),
    "multinomial_first": (
        lambda x: x.copy_(torch.multinomial(torch.tensor([[1.0, 0, 3, 6]] * COUNT, device=NAME), 1)[:, 0]),
        {0: 0.1, 2: 0.3, 3: 0.6},
    ),
}
"""How a tensor is filled, and the probability of each value."""


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(chip: Any, name: str) -> None:
    fill, wanted = DISCRETE[name]
    torch.manual_seed(7)
    x = torch.zeros(COUNT, dtype=torch.int64, device=NAME)
    fill(x)
    found = x.cpu()
    for value, chance in wanted.items():
        deviation = math.sqrt(COUNT * chance * (1 - chance))
        assert abs(int((found == value).sum()) - COUNT * chance) < 4 * deviation + 1, value
    assert sum(int((found == value).sum()) for value in wanted) >= COUNT - 2
    assert chip.fallbacks() == {}


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (torch.uint8, 0, 255),
        (torch.int16, 0, 2**15 - 1),
        (torch.int64, 0, 2**63 - 1),
        (torch.float16, 0, 2**11),
        (torch.float32, 0, 2**24),
        (torch.bool, 0, 1),
    ],
    ids=str,
)
def test_random_fills_the_range_of_a_type(chip: Any, dtype: torch.dtype, low: int, high: int) -> None:
    torch.manual_seed(7)
    found = torch.empty(COUNT, dtype=dtype, device=NAME).random_().cpu().double()
    assert low <= found.min() <= low + 0.01 * (high - low)
    assert high >= found.max() >= low + 0.99 * (high - low)
    middle = high / 2
    assert abs(found.mean() - middle) < 5 * (high - low + 1) / math.sqrt(12 * COUNT) + 0.5


@pytest.mark.parametrize("low", [-(2**63), -(2**62)])
def test_ranges_wider_than_63_bits(chip: Any, low: int) -> None:
    torch.manual_seed(7)
    found = torch.empty(COUNT, dtype=torch.int64, device=NAME).random_(low, None).cpu()
    assert found.min() >= low
    assert found.min() < low + 2**58
    assert found.max() > 2**63 - 2**58


def test_multinomial_without_replacement_draws_each_category_once(chip: Any) -> None:
    drawn = torch.multinomial(torch.tensor([[1.0, 2, 3, 4, 5]] * 100, device=NAME), 5).cpu()
    assert drawn.sort(-1).values.equal(torch.arange(5).expand(100, 5))


def test_uniform_numbers_in_half_precision_are_below_the_end(chip: Any) -> None:
    found = torch.empty(COUNT, dtype=torch.bfloat16, device=NAME).uniform_(1, 2).cpu()
    assert found.min() >= 1
    assert found.max() < 2


def test_views_are_filled_and_their_surroundings_kept(chip: Any) -> None:
    whole = torch.zeros(50, 60, device=NAME)
    whole.t()[10:30:2, 5:].uniform_(1, 2)
    found = whole.cpu().t()
    assert ((found[10:30:2, 5:] >= 1) & (found[10:30:2, 5:] < 2)).all()
    assert int((found != 0).sum()) == 10 * 45


def test_the_generator_decides(chip: Any) -> None:
    generator = torch.Generator()
    drawn = [torch.zeros(9, device=NAME).normal_(generator=generator.manual_seed(s)).cpu() for s in (1, 1, 2)]
    assert drawn[0].equal(drawn[1])
    assert not drawn[0].equal(drawn[2])
    again = torch.zeros(9, device=NAME).normal_(generator=generator).cpu()
    assert not again.equal(drawn[2])


@pytest.mark.parametrize("call", ["uniform_", "normal_", "exponential_", "cauchy_", "log_normal_"])
def test_integers_are_refused(chip: Any, call: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{call} is not implemented for tensors of torch.int32"):
        getattr(torch.zeros(3, dtype=torch.int32, device=NAME), call)()


def test_equal(chip: Any) -> None:
    x = torch.arange(6, device=NAME)
    assert torch.equal(x, x.clone())
    assert not torch.equal(x, x + 1)
    assert not torch.equal(x, x.view(2, 3))
    assert chip.fallbacks() == {}
