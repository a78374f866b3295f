"""Arguments other than scalars: None, constants, tuples, named tuples, tensor descriptors, defaults and keywords."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import triton.language as tl

from triton_porting_kit.conformance.arrays import GuardedArray
from triton_porting_kit.conformance.check import Checks
from triton_porting_kit.conformance.comparison import identical
from triton_porting_kit.conformance.context import Context
from triton_porting_kit.conformance.language.source import make_kernel
from triton_porting_kit.conformance.types import KINDS

CHECKS = Checks("runtime/structures", compiles=True)

Pair = namedtuple("Pair", ["left", "right"])
Config = namedtuple("Config", ["scale", "pointer", "shape"])


def stores(
    context: Context, source: str, arguments: Callable[[GuardedArray], Any], expected: list[int]
) -> None:
    """Launch a kernel whose first parameter is an output of 64-bit integers, and compare the output.

    `arguments` returns positional arguments, or a dictionary, given an array of the 64-bit integers 10, 11, 12, …
    """
    out = context.empty((len(expected),), "i64")
    given = context.array(np.arange(10, 26, dtype=np.int64), "i64")
    made = arguments(given)
    positional, named = ((), made) if isinstance(made, dict) else (made, {})
    make_kernel(source)[(1,)](out, *positional, **named)
    if context.runs:
        context.compare("what the kernel stored", identical(context.read(out), np.array(expected, np.int64)))


def add(
    name: str, requirement: str, body: str, arguments: Callable[[GuardedArray], Any], expected: list[int]
) -> None:
    """Add a check. `body`: the kernel's parameters in the first line, then its statements."""
    parameters, _, statements = body.partition("\n")
    lines = "".join(f"    {line}\n" for line in statements.split("\n"))
    source = f"def structure(O, {parameters}):\n{lines}"
    CHECKS.add(
        name,
        requirement,
        partial(stores, source=source, arguments=arguments, expected=expected),
    )


# --- None and constants ---------------------------------------------------------------------------------

_NONE = (
    "x, p, y\ntl.store(O, x)\ntl.store(O + 1, y)\n"
    "if p is None:\n    tl.store(O + 2, 1)\nelse:\n    tl.store(O + 2, tl.load(p))"
)

add(
    "none",
    "None reaches the kernel as None, and arguments after it are at their positions.",
    _NONE,
    lambda a: (5, None, 7),
    [5, 7, 1],
)
add(
    "not-none",
    "A parameter that accepts None also accepts a pointer.",
    _NONE,
    lambda a: (5, a, 7),
    [5, 7, 10],
)
add(
    "all-none",
    "All arguments except the output may be None.",
    "a, b, c\ntl.store(O, (a is None) + 2 * (b is None) + 4 * (c is None))",
    lambda a: (None, None, None),
    [7],
)


def _with_constant(value: Any, array: GuardedArray) -> tuple[Any, ...]:
    return 5, value, 7


for _name, _value, _expression, _expected in (
    ("int", 41, "C + 1", 42),
    ("negative-int", -5, "C", -5),
    ("large-int", 1 << 40, "C", 1 << 40),
    ("one", 1, "C", 1),
    ("zero", 0, "C", 0),
    ("true", True, "2 if C else 3", 2),
    ("false", False, "2 if C else 3", 3),
    ("str", "max", "2 if C == 'max' else 3", 2),
    ("float", 2.5, "2 if C == 2.5 else 3", 2),
    ("none", None, "2 if C is None else 3", 2),
    ("dtype", tl.int8, "tl.full((), 300, tl.int32).to(C)", 44),
    ("tuple", (3, 4), "C[0] * 10 + C[1]", 34),
):
    add(
        f"constexpr-{_name}",
        f"The constant {_value!r} reaches the kernel as a constant, and arguments after it are at their positions.",
        f"x, C: tl.constexpr, y\ntl.store(O, x)\ntl.store(O + 1, {_expression})\ntl.store(O + 2, y)",
        partial(_with_constant, _value),
        [5, _expected, 7],
    )

add(
    "constexprs-between",
    "Constants before, between and after arguments do not shift them.",
    "A: tl.constexpr, x, B: tl.constexpr, y, C: tl.constexpr, z, D: tl.constexpr\n"
    "tl.store(O, x * A)\ntl.store(O + 1, y * B)\ntl.store(O + 2, z * C)\ntl.store(O + 3, D)",
    lambda a: (2, 3, 4, 5, 6, 7, 8),
    [6, 20, 42, 8],
)

# --- defaults and keywords ---------------------------------------------------------------------------------

_FOUR = "a, b, c=30, D: tl.constexpr = 40\ntl.store(O, a)\ntl.store(O + 1, b)\ntl.store(O + 2, c)\ntl.store(O + 3, D)"

add(
    "defaults", "Parameters without an argument have their defaults.", _FOUR, lambda a: (1, 2), [1, 2, 30, 40]
)
add("defaults-given", "Arguments replace defaults.", _FOUR, lambda a: (3, 4, 5, 6), [3, 4, 5, 6])
add(
    "keywords",
    "Arguments may be given by name, in any order.",
    _FOUR,
    lambda a: {"D": 9, "b": 7, "c": 8, "a": 6},
    [6, 7, 8, 9],
)

# --- tuples ------------------------------------------------------------------------------------------------

add(
    "tuple",
    "The members of a tuple reach the kernel, each with its type and value.",
    "x, t, y\ntl.store(O, x)\ntl.store(O + 1, t[0])\ntl.store(O + 2, tl.load(t[1] + 2))\n"
    "tl.store(O + 3, (t[2] * 4).to(tl.int64))\ntl.store(O + 4, y)",
    lambda a: (5, (1 << 40, a, 2.5), 7),
    [5, 1 << 40, 12, 10, 7],
)
add(
    "tuple-of-one",
    "A tuple of one member is a tuple.",
    "t, y\ntl.store(O, t[0])\ntl.store(O + 1, len(t))\ntl.store(O + 2, y)",
    lambda a: ((33,), 7),
    [33, 1, 7],
)
add(
    "tuple-nested",
    "Tuples may be nested.",
    "t, y\ntl.store(O, t[0])\ntl.store(O + 1, t[1][0])\ntl.store(O + 2, t[1][1][0])\n"
    "tl.store(O + 3, tl.load(t[1][1][1]))\n"
    "tl.store(O + 4, t[2])\ntl.store(O + 5, y)",
    lambda a: ((3, (5, (7, a)), 9), 11),
    [3, 5, 7, 10, 9, 11],
)
add(
    "tuple-with-none",
    "None in a tuple is None, and occupies no argument position.",
    "t, y\ntl.store(O, t[0])\ntl.store(O + 1, 1 if t[1] is None else 0)\ntl.store(O + 2, t[2])\ntl.store(O + 3, y)",
    lambda a: ((3, None, 5), 7),
    [3, 1, 5, 7],
)
add(
    "tuple-with-constexpr",
    "A constant in a tuple is a constant.",
    "t, y\ntl.static_assert(t[1] == 4)\ntl.store(O, t[0])\ntl.store(O + 1, tl.sum(tl.full((t[1],), 2, tl.int32)))\n"
    "tl.store(O + 2, y)",
    lambda a: ((3, tl.constexpr(4)), 7),
    [3, 8, 7],
)
add(
    "tuple-with-one",
    "The value 1 in a tuple is 1, whether or not Triton makes it a constant.",
    "t, y\ntl.store(O, t[0])\ntl.store(O + 1, t[1])\ntl.store(O + 2, t[2])\ntl.store(O + 3, y)",
    lambda a: ((1, 16, 3), 1),
    [1, 16, 3, 1],
)
add(
    "tuples-of-pointers",
    "Tuples may hold many pointers.",
    "s, t\nfor k in tl.static_range(4):\n    tl.store(O + k, tl.load(s[k] + k) + tl.load(t[3 - k]))",
    lambda a: ((a, a, a, a), (a, a, a, a)),
    [20, 21, 22, 23],
)
add(
    "named-tuple",
    "The members of a named tuple reach the kernel by name and by place.",
    "p, y\ntl.store(O, p.left)\ntl.store(O + 1, p[1])\ntl.store(O + 2, y)",
    lambda a: (Pair(3, 1 << 33), 7),
    [3, 1 << 33, 7],
)
add(
    "named-tuple-nested",
    "Named tuples may be members of tuples, and tuples of named tuples.",
    "t, y\ntl.store(O, t[0])\ntl.store(O + 1, (t[1].scale * 8).to(tl.int64))\n"
    "tl.store(O + 2, tl.load(t[1].pointer + 3))\n"
    "tl.store(O + 3, t[1].shape[1])\ntl.store(O + 4, t[1].shape.left)\ntl.store(O + 5, y)",
    lambda a: ((3, Config(0.5, a, Pair(17, 19))), 7),
    [3, 4, 13, 19, 17, 7],
)

# --- tensor descriptors ------------------------------------------------------------------------------------


class _DType(str):
    """The name of an element type, with the attributes that descriptors read."""

    itemsize: int
    is_floating_point: bool

    @classmethod
    def of(cls, array: GuardedArray) -> _DType:
        made = cls(array.dtype)
        made.itemsize = array.kind.storage.itemsize
        made.is_floating_point = array.kind.is_float
        return made


class _Base:
    """An array, as the base of a descriptor."""

    def __init__(self, array: GuardedArray) -> None:
        self._array = array
        self.dtype = _DType.of(array)
        self.shape = array.shape

    def data_ptr(self) -> int:
        return self._array.data_ptr()

    def stride(self) -> tuple[int, ...]:
        return self._array.strides


def _descriptor_source(block: tuple[int, ...]) -> str:
    """The source of a kernel that copies the block at given indices; two other arguments surround the descriptor."""
    rank = len(block)
    places = ", ".join(f"i{axis}" for axis in range(rank))
    indices = " + ".join(
        f"tl.arange(0, {size}).reshape({[size if axis == d else 1 for d in range(rank)]}) "
        f"* {int(np.prod(block[axis + 1 :]))}"
        for axis, size in enumerate(block)
    )
    return (
        f"def block_of(x, D, O, {places}, y, M):\n"
        f"    tl.store(O + {indices}, D.load([{places}]))\n"
        "    tl.store(M, x)\n    tl.store(M + 1, y)\n"
    )


def _descriptor(
    context: Context, kind: str, shape: tuple[int, ...], block: tuple[int, ...], start: tuple[int, ...]
) -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    values = context.random.integers(-50, 50, shape).astype(KINDS[kind].host)
    given, out, marks = context.array(values, kind), context.empty(block, kind), context.empty((2,), "i64")
    base = _Base(given)
    descriptor = TensorDescriptor(base, [*shape], [*given.strides], [*block])
    make_kernel(_descriptor_source(block))[(1,)](77, descriptor, out, *start, 99, marks)
    if context.runs:
        grids = np.meshgrid(*(s + np.arange(b) for s, b in zip(start, block, strict=True)), indexing="ij")
        inside = np.logical_and.reduce([(g >= 0) & (g < n) for g, n in zip(grids, shape, strict=True)])
        clipped = tuple(np.clip(g, 0, n - 1) for g, n in zip(grids, shape, strict=True))
        expected = np.where(inside, values[clipped], 0).astype(values.dtype)
        context.compare("the block", identical(context.read(out), expected))
        context.compare("the arguments around", identical(context.read(marks), np.array([77, 99], np.int64)))


for _kind, _shape, _block, _start in (
    ("fp32", (100,), (32,), (64,)),
    ("fp32", (100,), (32,), (80,)),
    ("fp32", (10, 64), (4, 16), (8, 32)),
    ("fp16", (10, 64), (8, 32), (3, 40)),
    ("i32", (33, 36), (16, 16), (17, 20)),
    ("i8", (20, 64), (8, 32), (15, 48)),
    ("fp32", (3, 5, 16), (2, 4, 8), (1, 2, 4)),
    ("fp32", (2, 3, 5, 16), (1, 2, 4, 8), (1, 1, 2, 4)),
    ("fp32", (2, 2, 3, 5, 16), (1, 2, 2, 4, 8), (1, 0, 1, 2, 4)),
):
    CHECKS.add(
        f"descriptor-{_kind}-{'x'.join(map(str, _shape))}-at-{'-'.join(map(str, _start))}",
        f"A descriptor of {_kind} with shape {_shape}, created on the host, reaches the kernel with its shape and "
        "strides, and arguments around it are at their positions.",
        partial(_descriptor, kind=_kind, shape=_shape, block=_block, start=_start),
        needs=("feature:descriptors", f"type:{_kind}"),
        elements=int(np.prod(_block)),
    )


@CHECKS.check(
    "descriptors-in-tuple",
    "Descriptors may be members of tuples.",
    needs=("feature:descriptors", "type:fp32"),
    elements=64,
)
def _in_tuple(context: Context) -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    source = (
        "def in_tuple(O, t, y, M):\n"
        "    i = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]\n"
        "    tl.store(O + i, t[1].load([1, 0]) + t[2][0].load([t[0], 0]))\n"
        "    tl.store(M, y)\n"
    )
    values = context.random.integers(-50, 50, (8, 16)).astype(np.float32)
    others = context.random.integers(-50, 50, (8, 16)).astype(np.float32)
    first, second = context.array(values, "fp32"), context.array(others, "fp32")
    descriptors = [TensorDescriptor(_Base(a), [8, 16], [16, 1], [4, 16]) for a in (first, second)]
    out, marks = context.empty((4, 16), "fp32"), context.empty((1,), "i64")
    make_kernel(source)[(1,)](out, (3, descriptors[0], (descriptors[1],)), 55, marks)
    if context.runs:
        context.compare("the sum", identical(context.read(out), values[1:5] + others[3:7]))
        context.compare("the argument behind", identical(context.read(marks), np.array([55], np.int64)))
