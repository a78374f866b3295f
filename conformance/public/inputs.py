"""Inputs of entries: functions of a generator and the type of the case, which make a tensor of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.conformance.public.entries import Input, Lazy

torch: Any = Lazy("torch")


def normal(*shape: int, scale: float = 1.0, shift: float = 0.0, dtype: str = "") -> Input:
    """Normally distributed elements. `dtype`: a type of its own; by default that of the case."""

    def make(generator: Any, kind: Any) -> Any:
        values = torch.randn(shape, generator=generator, dtype=torch.float64) * scale + shift
        return values.to(getattr(torch, dtype) if dtype else kind)

    return make


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, dtype: str = "") -> Input:
    """Elements between two bounds."""

    def make(generator: Any, kind: Any) -> Any:
        values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
        return values.to(getattr(torch, dtype) if dtype else kind)

    return make


def integers(*shape: int, high: int, low: int = 0, dtype: str = "int64") -> Input:
    """Integers from `low` on, below `high`. `dtype` may be empty: the type of the case."""

    def make(generator: Any, kind: Any) -> Any:
        values = torch.randint(low, high, shape, generator=generator)
        return values.to(getattr(torch, dtype) if dtype else kind)

    return make


def booleans(*shape: int) -> Input:
    """True and false, as often."""

    def make(generator: Any, kind: Any) -> Any:
        return torch.rand(*shape, generator=generator) < 0.5

    return make


def made(make: Callable[[Any], Any], dtype: str = "") -> Input:
    """What a function of the generator makes. `dtype`: the type it is converted to; ``case`` is that of the case."""

    def convert(generator: Any, kind: Any) -> Any:
        found = make(generator)
        return found.to(kind if dtype == "case" else getattr(torch, dtype)) if dtype else found

    return convert
