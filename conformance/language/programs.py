"""Whole programs of the language that are more than an operation on tiles: far addresses, calls, strings."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel

CHECKS = Checks("language/programs")

FAR = """
def far(X, O, D, distance):
    i = tl.arange(0, 64)
    x = tl.load((X.to(tl.int64) - distance * 4).to(tl.pointer_type(tl.int32)) + (distance + i))
    tl.store((O.to(tl.int64) + distance * 4).to(tl.pointer_type(tl.int32)) + (i - distance), x)
    d = tl.load(D + i) + distance
    tl.store((O.to(tl.int64) - distance * 4).to(tl.pointer_type(tl.int32)) + 64 + d, x + 1)
"""


@CHECKS.check(
    "far-addresses",
    "Offsets that take more than 32 bits lead to their elements, in loads, stores, gathers and scatters.",
    compiles=True,
)
def _far(context: Context) -> None:
    x, out = context.array(np.arange(64) * 7, "i32"), context.empty((128,), "i32")
    offsets = np.arange(64)[::-1].astype(np.int64)
    make_kernel(FAR)[(1,)](x, out, context.array(offsets, "i64"), (3 << 32) + 5)
    expected = np.concatenate([np.arange(64) * 7, (np.arange(64) * 7 + 1)[::-1]]).astype(np.int32)
    context.compare("what was stored", identical(context.read(out), expected))


FMA = """
def residues(X, Y, Z, O):
    i = tl.arange(0, 256)
    tl.store(O + i, tl.fma(tl.load(X + i), tl.load(Y + i), tl.load(Z + i)))
"""


def _residues(context: Context, kind: str) -> None:
    host = {"fp32": np.float32, "fp64": np.float64}[kind]
    x, y = context.random.uniform(1, 2, (2, 256)).astype(host)
    z = -(x * y)
    exact = [
        Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c in zip(x, y, z, strict=True)
    ]
    expected = np.array([float(number) for number in exact], host)
    out = context.empty((256,), kind)
    make_kernel(FMA)[(1,)](*(context.array(values, kind) for values in (x, y, z)), out)
    context.compare("x * y - the rounded x * y", identical(context.read(out), expected))


for _kind in ("fp32", "fp64"):
    CHECKS.add(
        f"fma-residue-{_kind}",
        "tl.fma rounds once: what a product lost when it was rounded comes out, to the last bit.",
        partial(_residues, kind=_kind),
        needs=(f"type:{_kind}",),
        compiles=True,
    )

CALLED = """@triton.jit(noinline=True)
def added(p, value):
    tl.store(p, tl.load(p) + value)

def calls(O):
    for k in range(3):
        added(O + k, 10 + k)
    added(O, 100)
"""


@CHECKS.check(
    "noinline-effects",
    "A function that is not inlined is called, every time, with the arguments of that call.",
    needs=("feature:noinline",),
    compiles=True,
)
def _noinline(context: Context) -> None:
    out = context.array(np.array([1, 2, 3, 4]), "i32")
    make_kernel(CALLED)[(1,)](out)
    expected = np.array([111, 13, 15, 4], np.int32)
    context.compare("what was added", identical(context.read(out), expected))


PRINTS = """
def prints(X):
    tl.device_print("the values", tl.load(X + tl.arange(0, 4)))
"""


@CHECKS.check(
    "print",
    "device_print shows its text, and every element.",
    needs=("feature:print",),
)
def _print(context: Context) -> None:
    x = context.array(np.array([1009, -2003, 3001, 40009]), "i32")

    def run() -> None:
        make_kernel(PRINTS)[(1,)](x)
        context.memory.synchronize()

    text = _standard_output(run)
    for wanted in ("the values", "1009", "-2003", "3001", "40009"):
        context.expect(wanted in text, f"standard output has {wanted!r}", f"it is {text[:500]!r}")


PLACES = """
def places():
    n = tl.program_id(0) + 10 * tl.program_id(1) + 100 * tl.program_id(2)
    tl.device_print("place", 7000 + n)
"""


@CHECKS.check(
    "print-places",
    "device_print says of each value which program has it: `(x, y, z)` stands before the text.",
    needs=("feature:print",),
)
def _print_places(context: Context) -> None:
    def run() -> None:
        make_kernel(PLACES)[(3, 2, 2)]()
        context.memory.synchronize()

    text = _standard_output(run)
    found = set()
    for line in text.splitlines():
        match = re.search(r"\((\d+), *(\d+), *(\d+)\).*place.*\b(7\d\d\d)\b", line)
        found |= {tuple(map(int, match.groups()))} if match else set()
    wanted = {(x, y, z, 7000 + x + 10 * y + 100 * z) for x in range(3) for y in range(2) for z in range(2)}
    context.expect(found == wanted, "each line has its program", f"standard output is {text[:500]!r}")


NUMBERS = """
def numbers(B, H, L):
    i = tl.arange(0, 2)
    tl.device_print("bytes", tl.load(B + i))
    tl.device_print("halves", tl.load(H + i))
    tl.device_print("longs", tl.load(L + i))
    tl.device_print("hexadecimal", tl.load(H + i) + 0xBEEF0000, hex=True)
"""


@CHECKS.check(
    "print-numbers",
    "device_print shows unsigned numbers without a sign, and hex=True shows hexadecimal digits.",
    needs=("feature:print",),
)
def _print_numbers(context: Context) -> None:
    values = {"u8": [201, 254], "u32": [3_000_000_007, 12], "i64": [-(2**63) + 9, 2**62 + 5]}
    arrays = [context.array(np.array(numbers), kind) for kind, numbers in values.items()]

    def run() -> None:
        make_kernel(NUMBERS)[(1,)](*arrays)
        context.memory.synchronize()

    text = _standard_output(run)
    for wanted in [str(number) for numbers in values.values() for number in numbers]:
        context.expect(wanted in text, f"standard output has {wanted}", f"it is {text[:800]!r}")
    shown = [f"{(number + 0xBEEF0000) % 2**32:x}" for number in values["u32"]]
    for wanted in shown:
        context.expect(wanted in text.lower(), f"standard output has {wanted}", f"it is {text[:800]!r}")


def _standard_output(run: Callable[[], None]) -> str:
    """What the process writes to its standard output during the block, from C too."""
    with tempfile.TemporaryFile() as file:
        before = os.dup(1)
        _flush()
        try:
            os.dup2(file.fileno(), 1)
            run()
            _flush()
        finally:
            os.dup2(before, 1)
            os.close(before)
        file.seek(0)
        return file.read().decode(errors="replace")


def _flush() -> None:
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
