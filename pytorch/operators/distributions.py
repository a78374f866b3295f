"""Random numbers, by Triton's Philox on the device.

Each call draws a seed from the generator (`generators.draw_seed`), so the generator's state decides the numbers. The
distributions are made of uniform numbers, normal numbers and bits by other operators of torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from triton_porting_kit.pytorch.accelerator import accelerator
from triton_porting_kit.pytorch.operators import generators
from triton_porting_kit.pytorch.operators.copies import Pointer
from triton_porting_kit.pytorch.operators.layouts import is_dense
from triton_porting_kit.pytorch.operators.registry import implements

_Generator = torch.Generator | None

_DIGITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53}
"""Bits of the significand: `random_` gives floats the integers up to 2 to this power."""


def _draw(target: torch.Tensor, generator: _Generator, *, normal: bool = False) -> None:
    """Fill a dense tensor: int64 with bits, floats with standard normal numbers or uniform ones from [0, 1)."""
    from triton_porting_kit.pytorch.operators.kernels import BLOCK, random32_kernel, random64_kernel

    seed = generators.draw_seed(generator)
    count = target.numel()
    if not count:
        return
    pointer = Pointer(target.data_ptr(), target.dtype)
    with accelerator().active():
        if target.dtype == torch.float32:
            random32_kernel[(-(-count // (4 * BLOCK)),)](pointer, count, seed, NORMAL=normal, BLOCK=BLOCK)
        else:
            integer = target.dtype == torch.int64
            grid = (-(-count // (2 * BLOCK)),)
            random64_kernel[grid](pointer, count, seed, NORMAL=normal, INTEGER=integer, BLOCK=BLOCK)


def _numbers(like: torch.Tensor, generator: _Generator, *, normal: bool = False) -> torch.Tensor:
    """Numbers in the shape of a tensor: in float64 if it is, otherwise in float32."""
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    result = torch.empty(like.shape, dtype=dtype, device=like.device)
    _draw(result, generator, normal=normal)
    return result


def _check_type(operator: str, tensor: torch.Tensor) -> None:
    if not tensor.dtype.is_floating_point:
        raise NotImplementedError(f"{operator} is not implemented for tensors of {tensor.dtype}")


def _in_place(self: torch.Tensor) -> bool:
    return self.dtype in (torch.float32, torch.float64) and is_dense(self)


@implements("uniform_")
def uniform_(
    self: torch.Tensor, low: float = 0.0, high: float = 1.0, *, generator: _Generator = None
) -> torch.Tensor:
    _check_type("uniform_", self)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    result = self if _in_place(self) else _numbers(self, generator)
    if result is self:
        _draw(self, generator)
    if (low, high) != (0.0, 1.0):
        result.mul_(high - low).add_(low)
    if result is not self:
        rounded = result.to(self.dtype)
        self.copy_(rounded.masked_fill_(rounded >= high, low))
    return self


@implements("normal_")
def normal_(
    self: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: _Generator = None
) -> torch.Tensor:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if self.dtype.is_complex:
        normal_(torch.view_as_real(self), 0.0, std / math.sqrt(2), generator=generator)
        return self.add_(mean) if mean else self
    _check_type("normal_", self)
    result = self if _in_place(self) else _numbers(self, generator, normal=True)
    if result is self:
        _draw(self, generator, normal=True)
    if (mean, std) != (0.0, 1.0):
        result.mul_(std).add_(mean)
    return self if result is self else self.copy_(result)


@implements("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor")
def normal(mean: Any, std: Any = 1.0, *, generator: _Generator = None) -> torch.Tensor:
    like = mean + std * 0 if isinstance(mean, torch.Tensor) else std
    return _numbers(like, generator, normal=True).mul_(std).add_(mean).to(like.dtype)


@implements("exponential_")
def exponential_(self: torch.Tensor, lambd: float = 1.0, *, generator: _Generator = None) -> torch.Tensor:
    _check_type("exponential_", self)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return self.copy_(_logarithms(self, generator).mul_(-1 / lambd))


@implements("geometric_")
def geometric_(self: torch.Tensor, p: float, *, generator: _Generator = None) -> torch.Tensor:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return self.copy_(_logarithms(self, generator).mul_(1 / math.log1p(-p)).ceil_())


def _logarithms(like: torch.Tensor, generator: _Generator) -> torch.Tensor:
    """The logarithms of uniform numbers from (0, 1): none is 0."""
    uniform = _numbers(like, generator)
    step = torch.finfo(uniform.dtype).eps / 2
    return uniform.neg_().add_(1).clamp_(max=1 - step).log_()


@implements("cauchy_")
def cauchy_(
    self: torch.Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: _Generator = None
) -> torch.Tensor:
    _check_type("cauchy_", self)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return self.copy_(_numbers(self, generator).sub_(0.5).mul_(math.pi).tan_().mul_(sigma).add_(median))


@implements("log_normal_")
def log_normal_(
    self: torch.Tensor, mean: float = 1.0, std: float = 2.0, *, generator: _Generator = None
) -> torch.Tensor:
    _check_type("log_normal_", self)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return self.copy_(_numbers(self, generator, normal=True).mul_(std).add_(mean).exp_())


@implements("random_")
def random_(self: torch.Tensor, *, generator: _Generator = None) -> torch.Tensor:
    if self.dtype == torch.bool:
        return random_from(self, 0, 2, generator=generator)
    if self.dtype.is_floating_point:
        return random_from(self, 0, 2 ** _DIGITS[self.dtype] + 1, generator=generator)
    return random_from(self, 0, torch.iinfo(self.dtype).max, generator=generator, inclusive=True)


@implements("random_.to")
def random_to(self: torch.Tensor, to: int, *, generator: _Generator = None) -> torch.Tensor:
    return random_from(self, 0, to, generator=generator)


@implements("random_.from")
def random_from(
    self: torch.Tensor, low: int, high: int | None, *, generator: _Generator = None, inclusive: bool = False
) -> torch.Tensor:
    """Integers from [low, high), or to the largest one of the type."""
    if high is None:
        limit = 2 ** _DIGITS[self.dtype] if self.dtype.is_floating_point else torch.iinfo(self.dtype).max
        high, inclusive = limit, True
    count = high - low + inclusive
    if count <= 0:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    bits = torch.empty(self.shape, dtype=torch.int64, device=self.device)
    _draw(bits, generator)
    if count < 2**63:
        return self.copy_(bits.remainder_(count).add_(low))
    # Bits - 2**63 is drawn, and int64 wraps around: what is count or more is reduced once.
    if count < 2**64:
        bits.sub_((bits >= count - 2**63) * _wrapped(count))
    return self.copy_(bits.add_(_wrapped(low + 2**63)))


def _wrapped(value: int) -> int:
    """The int64 with the same low 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


@implements("bernoulli_.float")
def bernoulli_(self: torch.Tensor, p: float = 0.5, *, generator: _Generator = None) -> torch.Tensor:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return self.copy_(_numbers(self, generator) < p)


@implements("bernoulli_.Tensor")
def bernoulli_tensor_(self: torch.Tensor, p: torch.Tensor, *, generator: _Generator = None) -> torch.Tensor:
    return self.copy_(_numbers(self, generator) < p.to(self.device))


@implements("bernoulli")
def bernoulli(self: torch.Tensor, *, generator: _Generator = None) -> torch.Tensor:
    return (_numbers(self, generator) < self).to(self.dtype)


@implements("native_dropout")
def native_dropout(input: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    kept = _numbers(input, None) >= p
    return input * kept * (0.0 if p == 1 else 1 / (1 - p)), kept


@implements("multinomial")
def multinomial(
    self: torch.Tensor, num_samples: int, replacement: bool = False, *, generator: _Generator = None
) -> torch.Tensor:
    """The categories with the smallest exponential times per weight: with replacement, of new times for each sample."""
    if not 0 < num_samples <= (num_samples if replacement else self.shape[-1]):
        raise RuntimeError(f"cannot sample {num_samples} of {self.shape[-1]} categories without replacement")
    weights = self.unsqueeze(-2).expand(_samples(self, num_samples)) if replacement else self
    times = torch.empty(
        weights.shape,
        dtype=torch.float64 if self.dtype == torch.float64 else torch.float32,
        device=self.device,
    )
    chances = weights / exponential_(times, generator=generator)
    if replacement or num_samples == 1:
        return chances.argmax(-1, keepdim=not replacement)
    return chances.topk(num_samples, -1).indices


def _samples(weights: torch.Tensor, count: int) -> Sequence[int]:
    return (*weights.shape[:-1], count, weights.shape[-1])
