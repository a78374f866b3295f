"""A plugin for pytest under which torch's operators on the CPU compute in float64: ``-p ...public.exactly``.

A test that compares a kernel with torch fails if either is off. If it passes here, torch's operators were: they round
sums and functions in the type of their inputs, while Triton's kernels often keep float32 up to the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

NARROW = frozenset({torch.float32, torch.float16, torch.bfloat16})


class InFloat64(TorchDispatchMode):
    """Every operator on floats of the CPU computes in float64. Its results are rounded once, to their own type.

    Views and random numbers are as they were, as is what float64 cannot compute.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _computes(func) or not any(map(_narrow, tree_leaves((args, kwargs)))):
            return func(*args, **kwargs)
        wide_args, wide_kwargs = tree_map(_wide, (args, kwargs))
        found = func(*args, **kwargs)
        with suppress(RuntimeError, NotImplementedError, TypeError):
            exact = func(*wide_args, **wide_kwargs)
            for result, better in zip(tree_leaves(found), tree_leaves(exact), strict=True):
                if _narrow(result) and better.dtype == torch.float64 and better.shape == result.shape:
                    result.copy_(better)
        return found


def _computes(func: Any) -> bool:
    """Whether an operator computes values: it is no view, and the same inputs give the same results."""
    writes = func._schema.is_mutable
    aliases = any(result.alias_info is not None for result in func._schema.returns)
    return (writes or not aliases) and torch.Tag.nondeterministic_seeded not in func.tags


def _narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dtype in NARROW


def _wide(value: Any) -> Any:
    """A copy in float64 of a tensor; float64 for a type."""
    if isinstance(value, torch.dtype):
        return torch.float64 if value in NARROW else value
    return value.to(torch.float64) if _narrow(value) else value


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Each test runs in the mode."""
    with InFloat64():
        yield
