"""Atomic operations: every operation on every type, with every ordering and scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from triton_porting_kit.conformance.language.shapes import Shape
from triton_porting_kit.conformance.language.table import ALL, BITS, FLOAT, FP8, Op
from triton_porting_kit.conformance.language.values import samples
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.rounding import rounded, wrap
from triton_porting_kit.conformance.types import KINDS, Array, Kind, from_bits, to_bits

SECTION = "Atomics"
COUNT = 61
ORDERS = ("acquire", "release", "acq_rel", "relaxed")
SCOPES = ("gpu", "cta", "sys")
SEMANTICS = tuple(f', sem="{order}"' for order in ORDERS) + tuple(
    f', sem="relaxed", scope="{scope}"' for scope in SCOPES
)
NAMES = (*ORDERS, *(f"relaxed_{scope}" for scope in SCOPES))


def _shapes(semantics: tuple[str, ...] = SEMANTICS, names: tuple[str, ...] = NAMES) -> tuple[Shape, ...]:
    forms = [Shape("tile", (COUNT,), {"hint": ""}), Shape("scalar", (COUNT,), {"hint": ""}, scalar=True)]
    return (
        *forms,
        *(
            Shape(f"tile_{name}", (COUNT,), {"hint": hint})
            for name, hint in zip(names, semantics, strict=True)
        ),
    )


def operands(kind: Kind, ordered: bool = False) -> tuple[Array, Array]:
    """Values of all classes. `ordered`: without NaN, infinities and zeros of both signs, so that each comparison has
    one answer."""
    x, v = samples(kind, COUNT, seed=1), samples(kind, COUNT, seed=2)[::-1]
    if kind.is_float and ordered:
        x, v = (np.where(np.isfinite(a) & (a != 0), a, a.dtype.type(1.5)) for a in (x, v))
    return x, np.ascontiguousarray(v)


def _combined(function: Callable[[Any, Any], Any], x: Array, v: Array, kind: Kind) -> Array:
    exact = [function(a, b) for a, b in zip(x.tolist(), v.tolist(), strict=True)]
    if kind.is_float:
        return rounded(exact, kind)
    return np.array([wrap(value, kind) for value in exact], kind.host)


def _update(name: str, function: Callable[[Any, Any], Any], types: tuple[str, ...]) -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        x, v = operands(kind, ordered=name in ("max", "min"))
        # The value that a masked-off lane would add is not 0.
        call = f"tl.atomic_{name}(X + i, tl.load(V + i{{0}}){{1}}{shape.params['hint']})"
        if shape.scalar:
            source = (
                f"def kernel_atomic_{name}(V, X, O):\n    for i in range({COUNT}):\n        old = {call.format('', '')}\n"
                "        tl.store(O + i, old)\n"
            )
            touched = np.ones(COUNT, bool)
        else:
            masked = call.format(f", mask=i < {COUNT}", f", mask=(i < {COUNT}) & (i % 3 != 1)")
            source = (
                f"def kernel_atomic_{name}(V, X, O):\n    i = tl.arange(0, 64)\n    old = {masked}\n"
                f"    tl.store(O + i, old, mask=(i < {COUNT}) & (i % 3 != 1))\n"
            )
            touched = np.arange(COUNT) % 3 != 1
        after = np.where(touched, _combined(function, x, v, kind), x)
        zeros = np.zeros_like(x)
        results = (Result(kind, after, initial=x), Result(kind, np.where(touched, x, zeros), initial=zeros))
        return Work(source, ((v, kind),), results)

    refused = tuple(t for t in ALL if t not in types and t not in ("i1", *OPEN.get(name, ())))
    return Op(f"atomic_{name}", SECTION, f"tl.atomic_{name}(p, x)", build, types, _shapes(), refused)


OPEN = {"and": FLOAT, "or": FLOAT, "xor": FLOAT, "xchg": ("fp16", "bf16")}
"""Types, by operation, whose support does not depend on the front end alone: they are neither tested nor required to
be refused."""


PROGRAMS = 200
"""The number of programs that update the same few elements."""


def _contended(name: str, types: tuple[str, ...]) -> Op:
    """Many concurrent programs that update a few elements."""
    code = {
        "add": (
            "tl.atomic_add(X + i % 3, (i % 7).to({T}))",
            lambda i: [int((i[i % 3 == r] % 7).sum()) for r in range(3)],
        ),
        "max": (
            "tl.atomic_max(X + i % 3, (i % 100).to({T}))",
            lambda i: [int((i[i % 3 == r] % 100).max()) for r in range(3)],
        ),
        "xor": (
            "tl.atomic_xor(X + i % 3, i.to({T}))",
            lambda i: [int(np.bitwise_xor.reduce(i[i % 3 == r])) for r in range(3)],
        ),
    }[name]

    def build(kind: Kind, shape: Shape) -> Work:
        line, values = code
        if kind.bits == 16:  # integers that these types represent exactly, even as the sum of 200 programs
            assert name == "add"
            line = line.replace("(i % 7)", "(i % 16 == 0)")
            values = lambda i: [int((i[i % 3 == r] % 16 == 0).sum()) for r in range(3)]  # noqa: E731
        source = f"def kernel_contended(X):\n    i = tl.program_id(0) * 32 + tl.arange(0, 32)\n    {line.format(T=kind.language)}\n"
        expected = np.array(values(np.arange(32 * PROGRAMS)), kind.host)
        return Work(source, (), (Result(kind, expected, initial=np.zeros(3, kind.host)),), grid=PROGRAMS)

    return Op(
        f"atomic_{name}_contended",
        SECTION,
        f"tl.atomic_{name}(p, x)",
        build,
        types,
        (Shape("programs", (3,)),),
    )


def _flipped(values: Array, kind: Kind, bit: int) -> Array:
    """Values whose patterns differ in one bit from the given ones."""
    patterns = to_bits(values, kind)
    unsigned = patterns.view(f"u{patterns.itemsize}")
    return from_bits((unsigned ^ unsigned.dtype.type(1 << bit)).view(patterns.dtype), kind)


def _swap() -> Op:
    types = ("i16", "u16", "i32", "u32", "i64", "u64", *FLOAT)

    def build(kind: Kind, shape: Shape) -> Work:
        x = (np.arange(32) - 5 * (kind.is_signed or kind.is_float)).astype(kind.host)
        i = np.arange(32)
        compared = np.where(i % 2 == 0, x, x + x.dtype.type(1)).astype(x.dtype)
        for residue, bit in ((3, kind.bits // 2), (5, 0), (7, kind.bits - 2)):
            compared = np.where(i % 8 == residue, _flipped(x, kind, bit), compared)
        values = (x * x.dtype.type(2)).astype(x.dtype)
        call = f"tl.atomic_cas(X + i, tl.load(E + i), tl.load(V + i){shape.params['hint']})"
        if shape.scalar:
            body = f"    for i in range(32):\n        tl.store(O + i, {call})\n"
        else:
            body = f"    i = tl.arange(0, 32)\n    tl.store(O + i, {call})\n"
        after = np.where(np.arange(32) % 2 == 0, values, x)
        return Work(
            "def kernel_cas(E, V, X, O):\n" + body,
            ((compared, kind), (values, kind)),
            (Result(kind, after, initial=x), Result(kind, x)),
        )

    return Op(
        "atomic_cas", SECTION, "tl.atomic_cas(p, expected, x)", build, types, _shapes(), ("i8", "u8", *FP8)
    )


def _plain(name: str) -> Op:
    """Atomic loads and stores."""
    order = "acquire" if name == "load" else "release"

    def build(kind: Kind, shape: Shape) -> Work:
        x, other = operands(kind)
        hint = shape.params["hint"]
        i, mask = ("i", "") if shape.scalar else ("i", f", mask=(i < {COUNT})")
        if name == "load":
            line = f"tl.store(O + {i}, tl.atomic_load(V + {i}{mask}{hint}){mask})"
        else:
            line = f"tl.atomic_store(O + {i}, tl.load(V + {i}{mask}){mask}{hint})"
        head = f"    for i in range({COUNT}):\n        " if shape.scalar else "    i = tl.arange(0, 64)\n    "
        return Work(
            f"def kernel_atomic_{name}(V, O):\n{head}{line}\n",
            ((x, kind),),
            (Result(kind, x, initial=other),),
        )

    shapes = _shapes((f', sem="{order}"', ', sem="relaxed"', ', scope="sys"'), (order, "relaxed", "sys"))
    return Op(f"atomic_{name}", SECTION, f"tl.atomic_{name}(p)", build, (*BITS, *FLOAT), shapes, since=(3, 9))


def _poll() -> Op:
    types = ("i16", "u16", "i32", "u32", "i64", "u64")

    def build(kind: Kind, shape: Shape) -> Work:
        x = np.arange(32).astype(kind.host)
        source = (
            "def kernel_poll(X, O):\n    i = tl.arange(0, 32)\n"
            "    tl.store(O + i, tl.atomic_poll(X + i, i, timeout_ns=1000))\n"
        )
        return Work(source, ((x, kind),), (Result(KINDS["i1"], np.ones(32, bool)),))

    return Op("atomic_poll", SECTION, "tl.atomic_poll(p, expected, timeout_ns=1000)", build, types, (Shape("tile", (32,)),),
        ("i8", "u8", *FLOAT, *FP8), since=(3, 9))  # fmt: skip


WORDS = ("i32", "u32", "i64", "u64")
OPS: tuple[Op, ...] = (
    _update("add", lambda a, b: a + b, (*WORDS, *FLOAT)),
    _update("max", max, (*WORDS, "fp32", "fp64")),
    _update("min", min, (*WORDS, "fp32", "fp64")),
    _update("and", lambda a, b: a & b, WORDS),
    _update("or", lambda a, b: a | b, WORDS),
    _update("xor", lambda a, b: a ^ b, WORDS),
    _update("xchg", lambda a, b: b, (*WORDS, "fp32", "fp64")),
    _swap(),
    _plain("load"),
    _plain("store"),
    _poll(),
    _contended("add", ("i32", "i64", "u32", "u64", *FLOAT)),
    _contended("max", ("i32", "i64", "u32", "fp32", "fp64")),
    _contended("xor", WORDS),
)
