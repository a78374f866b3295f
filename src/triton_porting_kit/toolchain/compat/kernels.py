"""Hooks of Triton's runtime, and the kernels that it has loaded."""

from __future__ import annotations

import functools
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .releases import internal


@contextmanager
def runtime_hooks(**hooks: Callable[..., Any]) -> Iterator[None]:
    """A context in which Triton calls these hooks, by their names in ``knobs.runtime``, and no others of the name."""
    from triton import knobs

    before = {name: getattr(knobs.runtime, name) for name in hooks}
    try:
        for name, hook in hooks.items():
            setattr(knobs.runtime, name, hook)
        yield
    finally:
        for name, hook in before.items():
            setattr(knobs.runtime, name, hook)


@contextmanager
def watched_compilations() -> Iterator[list[tuple[str, bool]]]:
    """A context whose list gets, for each kernel that Triton compiles, its name and whether its cache had it."""
    from triton import knobs

    seen: list[tuple[str, bool]] = []

    def listen(*, src: Any, cache_hit: bool, **_: Any) -> None:
        seen.append((str(src.name), bool(cache_hit)))

    before = knobs.compilation.listener
    knobs.compilation.listener = listen
    try:
        yield seen
    finally:
        knobs.compilation.listener = before


_loaded: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Triton's compiled kernels that were loaded onto a device, by `id`: another thread may add one at any time."""


@functools.cache
@internal
def watch_loaded_kernels() -> None:
    """Know each kernel that Triton loads from now on, for `forget_loaded_kernels`."""
    from triton.compiler.compiler import CompiledKernel

    by_triton = CompiledKernel._init_handles

    def init_handles(self: Any) -> None:
        if self.module is None:
            _loaded[id(self)] = self
        by_triton(self)

    CompiledKernel._init_handles = init_handles


def forget_loaded_kernels() -> None:
    """Let Triton load every compiled kernel that is watched again when it is next launched.

    For after a reset of the device: handles of modules and functions that Triton keeps are gone then.
    """
    # All of them first: one may hold the last reference to another, whose `__del__` would unload a module that is gone.
    for kernel in [kernel for reference in _loaded.valuerefs() if (kernel := reference()) is not None]:
        kernel.module = kernel.function = kernel._run = None


@internal
def select_driver(driver: Any) -> None:
    """Make a driver Triton's only active one: also after ``reset_active``, and for code that asks each driver."""
    from triton.backends import backends
    from triton.runtime import driver as runtime

    for backend in backends.values():
        active = isinstance(driver, backend.driver)
        backend.driver.is_active = staticmethod(lambda active=active: active)
    runtime._default = driver
    runtime.set_active(driver)


@internal
def compile_again(source: Any, metadata: Any, **options: Any) -> Any:
    """Triton's compiled kernel of a source, with the target and the options of other `metadata`, and with `options`."""
    import triton
    from triton.compiler.compiler import IRSource

    known = {name: getattr(metadata, name) for name in metadata._fields}
    given = {"target": metadata.target, "options": known | options}
    if not isinstance(source, IRSource):
        return triton.compile(source, **given)
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # Triton takes IR by its file, which may be another one by now
        path = Path(folder, Path(source.path).name)
        path.write_text(source.src)
        return triton.compile(str(path), **given)


@internal
def loaded_function(kernel: Any) -> int:
    """The driver's function of a compiled kernel, which is loaded onto the current device where it is not yet."""
    kernel._init_handles()
    return int(kernel.function)


@internal
def scratch_allocator(kind: str) -> Callable[[int, int, int | None], Any] | None:
    """What the user set to allocate the ``global`` or ``profile`` scratch of launches, called with bytes, alignment
    and stream; None where nothing is set.
    """
    from triton.runtime import _allocation

    holder = _allocation._allocator if kind == "global" else _allocation._profile_allocator
    found = holder.get()
    return None if isinstance(found, _allocation.NullAllocator) else found


@internal
def wrap_launchers(wrap: Callable[[Any, Any], Any]) -> None:
    """From now on, let every kernel that is loaded be launched by ``wrap(kernel, launcher)``; once per process.

    `kernel` is Triton's compiled kernel and `launcher` what its driver made to launch it.
    """
    from triton.compiler.compiler import CompiledKernel

    by_triton = CompiledKernel._init_handles

    def init_handles(self: Any) -> None:
        before = self._run
        by_triton(self)
        if self._run is not before:
            self._run = wrap(self, self._run)

    CompiledKernel._init_handles = init_handles


@internal
@contextmanager
def wrapped_launchers(wrap: Callable[[Any, Any], Any]) -> Iterator[None]:
    """A context in which every kernel, loaded before or not, is launched by ``wrap(kernel, launcher)``.

    The arguments are those of `wrap_launchers`. No other thread of the process may enter such a context meanwhile.
    """
    from triton.compiler.compiler import CompiledKernel

    by_triton = CompiledKernel.run
    known: weakref.WeakKeyDictionary[Any, tuple[Any, Any]] = weakref.WeakKeyDictionary()

    def run(self: Any) -> Any:
        launcher = by_triton.fget(self)
        if self not in known or known[self][0] is not launcher:
            known[self] = launcher, wrap(self, launcher)
        return known[self][1]

    CompiledKernel.run = property(run)
    try:
        yield
    finally:
        CompiledKernel.run = by_triton
