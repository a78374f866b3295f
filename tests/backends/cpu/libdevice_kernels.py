"""Kernels that apply one function to whole arrays."""

from __future__ import annotations

import functools
import linecache
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

from triton_porting_kit.driver import DeviceArray

BLOCK = 256
NUMPY = {
    "fp32": np.float32, "fp64": np.float64, "int32": np.int32, "int64": np.int64, "uint32": np.uint32,
    "uint64": np.uint64,
}  # fmt: skip


@functools.cache
def applying(expression: str, count: int, scalar: bool) -> Any:
    """The kernel that stores `expression` of a, b, c, d: tiles of the arrays A_ to D_, or one element after another."""
    names = "abcd"[:count]
    parameters = ", ".join(f"{name}_" for name in names)
    lines = [f"def applying({parameters}, O, n, B: tl.constexpr):"]
    if scalar:
        lines.append("    for i in range(n):")
        lines += [f"        {name} = tl.load({name}_ + i)" for name in names]
        lines.append(f"        tl.store(O + i, {expression})")
    else:
        lines.append("    i = tl.program_id(0) * B + tl.arange(0, B)")
        lines += [f"    {name} = tl.load({name}_ + i, mask=i < n)" for name in names]
        lines.append(f"    tl.store(O + i, {expression}, mask=i < n)")
    source = "\n".join(lines) + "\n"
    file = f"<applying {expression} {scalar}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"tl": tl, "libdevice": libdevice, "__name__": "kernels_of_libdevice"}
    exec(compile(source, file, "exec"), namespace)
    return triton.jit(namespace["applying"])


def apply(device: Any, expression: str, operands: list[Any], result: str, *, scalar: bool = False) -> Any:
    """What `expression` gives for NumPy arrays of one length, in an array of Triton's type `result`."""
    count = len(operands[0])
    out = DeviceArray.from_numpy(np.full(count, 99, NUMPY[result]), device)
    arrays = [DeviceArray.from_numpy(np.ascontiguousarray(operand), device) for operand in operands]
    grid = (1,) if scalar else (-(-count // BLOCK),)
    applying(expression, len(operands), scalar)[grid](*arrays, out, count, B=BLOCK)
    return out.numpy()
