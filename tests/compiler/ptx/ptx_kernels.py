"""Runs one assembly block on whole arrays, and has operands that cover the edges of each register type."""

from __future__ import annotations

import functools
import linecache
from typing import Any

import numpy as np
import triton
import triton.language as tl

from triton_porting_kit.driver import DeviceArray

TYPES = {
    "h": ("int16", np.uint16), "r": ("int32", np.uint32), "l": ("int64", np.uint64), "f": ("float32", np.float32),
    "d": ("float64", np.float64), "b": ("int8", np.uint8),
}  # fmt: skip
"""Triton's type, and NumPy's, of the operands of a constraint; `b` for bytes in a register."""
COUNT = 512


@functools.cache
def _kernel(asm: str, result: str, operands: str, pack: int) -> Any:
    names = [f"x{k}" for k in range(len(operands))]
    constraint = {"b": "r"}
    letters = ["=" + constraint.get(result, result), *(constraint.get(letter, letter) for letter in operands)]
    lines = [
        f"def block({', '.join(name.upper() for name in names)}, O, B: tl.constexpr):",
        "    i = tl.program_id(0) * B + tl.arange(0, B)",
        *(f"    {name} = tl.load({name.upper()} + i)" for name in names),
        f"    y = tl.inline_asm_elementwise({asm!r}, {','.join(letters)!r}, [{', '.join(names)}],"
        f" dtype=tl.{TYPES[result][0]}, is_pure=True, pack={pack})",
        "    tl.store(O + i, y)",
    ]
    source = "\n".join(lines) + "\n"
    file = f"<block {asm} {result} {operands} {pack}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"tl": tl, "__name__": "kernels_of_ptx"}
    exec(compile(source, file, "exec"), namespace)
    return triton.jit(namespace["block"])


def run(device: Any, asm: str, result: str, operands: str, arrays: list[Any], pack: int = 1) -> Any:
    """The results of a block for arrays of `COUNT` elements; integers without sign."""
    given = [DeviceArray.from_numpy(_signed(array), device) for array in arrays]
    out = DeviceArray.empty(COUNT, TYPES[result][0], device)
    _kernel(asm, result, operands, pack)[(2,)](*given, out, B=COUNT // 2)
    return np.asarray(out.numpy()).view(TYPES[result][1])


def _signed(array: Any) -> Any:
    array = np.ascontiguousarray(array)
    return array.view(array.dtype.str.replace("u", "i"))


FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 2.0**-126, 2.0**-127,
    2.0**-149, 3.4028235e38, -3.4028235e38, 65504.0, 65519.9, 65520.0, 448.0, 464.0, 480.0, 57344.0, 61440.0, 65536.0,
    2.0**-9, 2.0**-10, 2.0**-17, 0.25, 0.75, 1.25, 1.75, 5.0, 6.0, 7.0, -5.0, -0.25, 2.0**31, -(2.0**31), 2.0**32,
    2.0**63, 1.0039062, 1.0117188, 1.0004883]  # fmt: skip
INTEGERS = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF,
    0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF]  # fmt: skip


def sample(letter: str, seed: int) -> Any:
    """`COUNT` operands of a register type: edges in another order for each seed, then random ones."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(TYPES[letter][1])
    if dtype.kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            edges = np.array(FLOATS).astype(dtype)
        scale = 2.0 ** random.integers(-20, 20, COUNT - 2 * len(edges))
        others = (random.standard_normal(len(scale)) * scale).astype(dtype)
        return np.concatenate([random.permutation(edges), edges, others])
    edges = np.array([value & (2 ** (8 * dtype.itemsize) - 1) for value in INTEGERS], np.uint64).astype(dtype)
    others = random.integers(
        0, 2 ** (8 * dtype.itemsize) - 1, COUNT - 4 * len(edges), dtype=dtype, endpoint=True
    )
    return np.concatenate([*(random.permutation(edges) for _ in range(4)), others])


def assert_same(actual: Any, expected: Any, *operands: Any) -> None:
    """The same bits, except that all NaN are the same."""
    expected = np.asarray(expected, actual.dtype)
    same = actual == expected
    if actual.dtype.kind == "f":
        same = (same & (np.signbit(actual) == np.signbit(expected))) | (np.isnan(actual) & np.isnan(expected))
    wrong = np.flatnonzero(~same)
    if wrong.size:
        first = wrong[0]
        raise AssertionError(
            f"{wrong.size} of {actual.size} differ; for {[operand[first] for operand in operands]}: "
            f"{actual[first]!r} instead of {expected[first]!r}"
        )
