"""Kernels from source text."""

from __future__ import annotations

import functools
import hashlib
import linecache
import re
from collections.abc import Mapping
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice


@functools.cache
def make_kernel(source: str, **functions: Any) -> Any:
    """The `@triton.jit` function for the one undecorated function in `source`. A source is compiled once per process.

    `functions`: other `@triton.jit` functions, by the names under which the source calls them.
    """
    return _define(source, functions)


def make_batch(kernels: Mapping[str, Any], calls: str) -> Any:
    """A kernel with the source `calls`, which calls other kernels by name."""
    return _define(calls, kernels)


def _define(source: str, names: Mapping[str, Any]) -> Any:
    found = re.search(r"(?:\A|^(?!@).*\n)def (\w+)", source, re.MULTILINE)
    if found is None:
        raise ValueError("the source defines no kernel")
    # The name is the same in every process: it is part of what the compiler makes, and processes share a cache.
    mark = hashlib.sha256(source.encode()).hexdigest()[:16]
    file = f"<kernel {found[1]} {mark}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    # Triton identifies functions by module and name.
    namespace: dict[str, Any] = {"tl": tl, "triton": triton, "libdevice": libdevice}
    namespace |= {"__name__": f"kernels_{mark}", **names}
    exec(compile(source, file, "exec"), namespace)
    return triton.jit(namespace[found[1]])
