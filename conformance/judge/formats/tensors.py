"""Helpers for the formats that use torch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from triton_porting_kit.conformance.judge.errors import TaskError
from triton_porting_kit.conformance.types import Array


def seed_torch(seed: int) -> None:
    """Seed all global random generators, which tasks in these formats use."""
    import random

    import torch

    torch.manual_seed(seed & (1 << 62) - 1)
    random.seed(seed)
    np.random.seed(seed & (1 << 32) - 1)


@contextlib.contextmanager
def on_device(device: str) -> Iterator[None]:
    """Map requests for ``cuda`` to `device`: tasks and candidates in these formats are written for GPUs."""
    import torch
    from torch.overrides import TorchFunctionMode

    own = torch.device(device)
    if own.type == "cuda":
        yield
        return
    tensor: Any = torch.Tensor
    here: Any = torch
    is_cuda, generator, wait = tensor.is_cuda.__get__, here.Generator, here.cuda.synchronize

    def placed(value: Any) -> Any:
        kind = value.type if isinstance(value, torch.device) else value if isinstance(value, str) else ""
        return own if kind.partition(":")[0] == "cuda" else value

    class OnDevice(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, arguments: Any = (), keywords: Any = None
        ) -> Any:
            if function is is_cuda:
                return True
            if function is tensor.cuda:
                return arguments[0].to(own)
            keywords = {name: placed(value) for name, value in (keywords or {}).items()}
            return function(*map(placed, arguments), **keywords)

    def make(cls: Any, device: Any = "cpu") -> Any:
        return generator.__new__(generator, placed(device))

    # This must be a class, because annotations use it.
    here.Generator = type("Generator", (generator,), {"__new__": make})
    here.cuda.synchronize = lambda device=None: None
    try:
        with OnDevice():
            yield
    finally:
        here.Generator, here.cuda.synchronize = generator, wait


def as_tensor(values: Array) -> Any:
    """Convert values of an oracle to a tensor."""
    import torch

    return torch.from_numpy(np.array(values))


def as_array(tensor: Any) -> Array:
    """Convert a result to an array; floating-point values become float64."""
    import torch

    plain = tensor.detach().cpu()
    return np.asarray((plain.to(torch.float64) if plain.is_floating_point() else plain).contiguous().numpy())


def tensors_of(result: Any) -> list[Any]:
    """The tensors of a result, in order. Raises `TaskError` for anything else."""
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, tuple | list):
        return [tensor for item in result for tensor in tensors_of(item)]
    raise TaskError(f"the reference returns {type(result).__qualname__} instead of tensors")
