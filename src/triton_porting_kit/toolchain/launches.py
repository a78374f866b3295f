"""Checks of launches that Triton does not make before it calls the launcher."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from triton_porting_kit.errors import GridError, PortingKitError, SignatureError
from triton_porting_kit.toolchain import tensors


@functools.cache
def check_launches() -> None:
    """Let launches raise the kit's errors for what Triton ignores, or rejects without a name.

    Triton reads three counts of a grid. It reads the address of a tensor itself, before any launcher sees the tensor.
    """
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime.jit import KernelInterface

    # A replacement of Triton's own method, which every launch calls.
    def launcher(self: Any, grid: Any) -> Any:
        if type(grid) is not tuple or len(grid) > 3:
            grid = _checked(self, grid)

        def launch(*args: Any, **kwargs: Any) -> Any:
            try:
                return self.run(*args, grid=grid, warmup=False, **kwargs)
            except (RuntimeError, TypeError, KeyError) as error:
                if not isinstance(error, PortingKitError):
                    _explain(self, args, kwargs, error)
                raise

        return launch

    by_triton = CompiledKernel.__getitem__

    def compiled_launcher(self: Any, grid: Any) -> Any:
        return by_triton(self, _checked(self, grid))

    KernelInterface.__getitem__ = launcher
    CompiledKernel.__getitem__ = compiled_launcher


def _checked(kernel: Any, grid: Any) -> Any:
    """The grid, or a function that returns one, if it does not have too many counts."""
    if callable(grid):
        return lambda arguments: _checked(kernel, grid(arguments))
    if len(grid) > 3:
        name = getattr(kernel, "name", None) or getattr(kernel, "__name__", "the kernel")
        raise GridError(f"the grid {tuple(grid)} of {name} has {len(grid)} counts; the most is 3")
    return grid


def _explain(kernel: Any, args: Iterable[Any], kwargs: Mapping[str, Any], error: Exception) -> None:
    """Raise `SignatureError` if an argument is a tensor that no kernel can take."""
    names = getattr(kernel, "arg_names", ())  # not every kind of kernel has them
    for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
        for place, member in _members(name, value):
            if reason := tensors.refusal(member):
                raise SignatureError(f"argument '{place}': {reason}") from error


def _members(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple):
        for i, member in enumerate(value):
            yield from _members(f"{name}[{i}]", member)
    else:
        yield name, getattr(value, "base", value)
