"""Matrix products."""

from __future__ import annotations

import numpy as np

from triton_porting_kit.conformance.language.expression import addresses
from triton_porting_kit.conformance.language.shapes import Shape
from triton_porting_kit.conformance.language.table import FLOAT, FP8, INTEGER, Op, Tolerance
from triton_porting_kit.conformance.language.values import samples
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.rounding import from_float64
from triton_porting_kit.conformance.types import KINDS, Array, Kind

SECTION = "Matrix products"
TYPES = ("i8", *FLOAT, *FP8)
WITHIN = Tolerance(
    0,
    "K + 2 roundings of the accumulator's type, each half a unit of the sum of the products' magnitudes, and one of the "
    "result; fp32 operands may be rounded to 11 bits unless the precision forbids it",
)
PRODUCTS = (
    (1, 1, 1),
    (2, 4, 8),
    (16, 16, 16),
    (1, 32, 64),
    (64, 1, 32),
    (32, 64, 16),
    (8, 128, 4),
    (64, 2, 2),
    (16, 32, 128),  # K is as large as that of the largest matrix instructions for 8-bit types
)
NARROWED = {"tf32": 11, "bf16x3": 15, "bf16x6": 22, "tf32x3": 21}
"""The minimum number of significand bits that each precision keeps of an operand."""


def _shape(m: int, n: int, k: int, name: str = "", **params: object) -> Shape:
    return Shape(
        f"{m}x{n}x{k}{name}",
        (m, n, k),
        {"acc": False, "batch": 0, "turn": "", "precision": "", "loop": 0, "parts": 1, "special": False}
        | params,
    )


def operand(shape: tuple[int, ...], kind: Kind, seed: int) -> Array:
    random = np.random.default_rng(seed)
    if kind.is_integer:
        return random.integers(kind.lowest, kind.highest, shape, dtype=kind.host, endpoint=True)
    if kind.is_minifloat:
        values = samples(kind, 300, seed)
        return random.choice(values[np.isfinite(values) & (np.abs(values) < 1.8)], shape).astype(kind.host)
    return from_float64(random.standard_normal(shape), kind)


def _build(kind: Kind, shape: Shape, accumulator: Kind) -> Work:
    if shape.params["special"]:
        return _special(kind, shape, accumulator)
    m, n, k = shape.extents
    batch = (shape.params["batch"],) if shape.params["batch"] else ()
    turn, precision = shape.params["turn"], shape.params["precision"]
    a, b = operand((*batch, m, k), kind, 1), operand((*batch, k, n), kind, 2)
    c = operand((*batch, m, n), accumulator, 3)
    c = c // 4 if accumulator.is_integer else c
    stored = [np.ascontiguousarray(v.swapaxes(-1, -2)) if s in turn else v for v, s in ((a, "a"), (b, "b"))]
    order = "(0, 2, 1)" if batch else "(1, 0)"
    flipped = [f"tl.permute({v}, {order})" if v in turn else v for v in "ab"]
    more = "" if accumulator.name == "fp32" else f", out_dtype={accumulator.language}"
    more += f', input_precision="{precision}"' if precision else ""
    more += f", acc=tl.load(C + {addresses(c.shape)[0]})" if shape.params["acc"] else ""
    result = f"tl.dot({flipped[0]}, {flipped[1]}{more})"
    parameters = "A, B, C, O" if shape.params["acc"] else "A, B, O"
    source = (
        f"def kernel_dot({parameters}):\n    a = tl.load(A + {addresses(stored[0].shape)[0]})\n"
        f"    b = tl.load(B + {addresses(stored[1].shape)[0]})\n    tl.store(O + {addresses(c.shape)[0]}, {result})\n"
    )
    if step := shape.params["loop"]:
        source = _looped(m, n, k, step, f", out_dtype={accumulator.language}")
    if (parts := shape.params["parts"]) > 1:
        source = _nested(m, n, k, step, parts, f", out_dtype={accumulator.language}")
        stored[0] = operand((m, k // parts), kind, 1)
        a = stored[0].reshape(m, -1, 1, step).repeat(parts, 2).reshape(m, k)
    inputs = [(stored[0], kind), (stored[1], kind)] + ([(c, accumulator)] if shape.params["acc"] else [])
    base = c if shape.params["acc"] else np.zeros_like(c)
    allowed = precision or ("tf32" if kind.name == "fp32" else "")  # the default precision of GPUs
    return Work(source, tuple(inputs), (_result(a, b, base, accumulator, allowed),))


def _looped(m: int, n: int, k: int, step: int, more: str) -> str:
    """The kernel that starts its sums from a loaded tile and accumulates in a loop."""
    return (
        f"def kernel_dot(A, B, C, O):\n    rows, columns = tl.arange(0, {m})[:, None], tl.arange(0, {n})[None, :]\n"
        f"    acc = tl.load(C + rows * {n} + columns)\n    for k in range(0, {k}, {step}):\n"
        f"        a = tl.load(A + rows * {k} + k + tl.arange(0, {step})[None, :])\n"
        f"        b = tl.load(B + (k + tl.arange(0, {step})[:, None]) * {n} + columns)\n"
        f"        acc = tl.dot(a, b, acc{more})\n    tl.store(O + rows * {n} + columns, acc)\n"
    )


def _nested(m: int, n: int, k: int, step: int, parts: int, more: str) -> str:
    """The kernel whose outer loop moves A, and whose inner loop multiplies the same tile of A by `parts` tiles of B."""
    return (
        f"def kernel_dot(A, B, C, O):\n    rows, columns = tl.arange(0, {m})[:, None], tl.arange(0, {n})[None, :]\n"
        f"    acc = tl.load(C + rows * {n} + columns)\n"
        f"    a = A + rows * {k // parts} + tl.arange(0, {step})[None, :]\n"
        f"    b = B + tl.arange(0, {step})[:, None] * {n} + columns\n"
        f"    for outer in range({k // parts // step}):\n        for inner in range({parts}):\n"
        f"            acc = tl.dot(tl.load(a), tl.load(b), acc{more})\n            b += {step * n}\n        a += {step}\n"
        f"    tl.store(O + rows * {n} + columns, acc)\n"
    )


def _in_place(kind: Kind, shape: Shape) -> Work:
    """Multiply a matrix twice, and overwrite it with each product. Results are wrong if a backend reads operands after
    the store, or reuses a packed copy of the old contents.

    The factor is a permutation with signs, so every product is exact in every type and precision.
    """
    _, n, k = shape.extents
    step = shape.params["loop"]
    random = np.random.default_rng(7)
    a = np.zeros((k, k))
    a[np.arange(k), random.permutation(k)] = random.choice([-1.0, 1.0], k)
    b = random.integers(-8, 9, (k, n)).astype(np.float64)
    source = (
        f"def kernel_dot(A, B, O):\n    rows, columns = tl.arange(0, {k})[:, None], tl.arange(0, {n})[None, :]\n"
        f"    tl.store(O + rows * {n} + columns, tl.load(B + rows * {n} + columns))\n    tl.debug_barrier()\n"
        f"    for turn in range(2):\n        acc = tl.zeros(({k}, {n}), tl.{'float64' if kind.name == 'fp64' else 'float32'})\n"
        f"        for k in range(0, {k}, {step}):\n"
        f"            a = tl.load(A + rows * {k} + k + tl.arange(0, {step})[None, :])\n"
        f"            b = tl.load(O + (k + tl.arange(0, {step})[:, None]) * {n} + columns)\n"
        f"            acc = tl.dot(a, b, acc, out_dtype=acc.dtype)\n        tl.debug_barrier()\n"
        f"        tl.store(O + rows * {n} + columns, acc.to({kind.language}))\n        tl.debug_barrier()\n"
    )
    inputs = tuple((from_float64(value, kind), kind) for value in (a, b))
    return Work(source, inputs, (Result(kind, from_float64(a @ a @ b, kind), any_zero=True),))


def _kept(kind: Kind, shape: Shape) -> Work:
    """Weights that are computed from bytes, multiplied, and then stored. A backend may multiply them in one form and keep
    them in another; if it fills only the first, it stores garbage.

    The square root of w (w + 1) is less than a half above w, so the weights are the bytes, and sums are exact.
    """
    m, n, k = shape.extents
    random = np.random.default_rng(11)
    a, w = random.integers(-2, 3, (m, k)), random.integers(0, 100, (k, n))
    turned = bool(shape.params["turn"])
    accumulator = KINDS["fp64" if kind.name == "fp64" else "fp32"]
    stored = np.ascontiguousarray(w.T if turned else w).astype(np.int8)
    place = f"columns * {k} + depth" if turned else f"depth * {n} + columns"
    source = (
        f"def kernel_dot(A, B, O, W):\n    rows, columns = tl.arange(0, {m})[:, None], tl.arange(0, {n})[None, :]\n"
        f"    depth = tl.arange(0, {k})[:, None]\n"
        f"    a = tl.load(A + rows * {k} + tl.arange(0, {k})[None, :])\n"
        f"    wide = tl.load(B + {place}).to(tl.float32)\n"
        f"    w = (tl.sqrt(wide) * tl.sqrt(wide + 1)).to(tl.int8).to({kind.language})\n"
        f"    tl.store(O + rows * {n} + columns, tl.dot(a, w, out_dtype={accumulator.language}))\n"
        f"    tl.store(W + depth * {n} + columns, w)\n"
    )
    products = Result(accumulator, from_float64((a @ w).astype(np.float64), accumulator), any_zero=True)
    return Work(
        source,
        ((from_float64(a.astype(np.float64), kind), kind), (stored, KINDS["i8"])),
        (products, Result(kind, from_float64(w.astype(np.float64), kind))),
    )


def _shared(kind: Kind, shape: Shape) -> Work:
    """Products of a left factor in two sums of a loop, or of two loops, which only hand the sums on.

    A backend may pack the factors of several iterations together. Then the other product has to find its rows there; in
    two loops, each sum has a state of its own. The factor is every other element of its rows, so that reading it once is
    cheaper. All sums are exact.
    """
    m, n, k = shape.extents
    step, parts = shape.params["loop"], shape.params["parts"]
    nested = parts > 1
    random = np.random.default_rng(13)
    a, b = random.integers(-2, 3, (m, k, 2)), random.integers(-2, 3, (k, n))
    c = random.integers(-2, 3, (step, n))
    accumulator = KINDS["fp64" if kind.name == "fp64" else "fp32"]
    loops = f"    for k in range(0, {k}, {step}):\n"
    if nested:
        loops = f"    for outer in range({k // step // parts}):\n        for inner in range({parts}):\n"
    body = [
        *[f"k = (outer * {parts} + inner) * {step}"] * nested,
        f"depth = tl.arange(0, {step})",
        f"a = tl.load(A + (rows * {k} + k + depth[None, :]) * 2)",
        *["a = a + a"] * nested,
        f"b = tl.load(B + (k + depth[:, None]) * {n} + columns)",
        "total = tl.dot(a, b, total, out_dtype=total.dtype)",
        f"c = tl.load(C + depth[:, None] * {n} + columns)",
        f"other = tl.dot(a, c, {'other, ' * nested}out_dtype=other.dtype){' - other' * (not nested)}",
    ]
    source = (
        f"def kernel_dot(A, B, C, O, P):\n    rows, columns = tl.arange(0, {m})[:, None], tl.arange(0, {n})[None, :]\n"
        f"    total = tl.zeros(({m}, {n}), {accumulator.language})\n    other = tl.zeros(({m}, {n}), {accumulator.language})\n"
        + loops
        + "".join(f"{' ' * (12 if nested else 8)}{line}\n" for line in body)
        + f"    tl.store(O + rows * {n} + columns, total)\n    tl.store(P + rows * {n} + columns, other)\n"
    )
    whole, other = a[:, :, 0] * (1 + nested), np.zeros((m, n))
    for start in range(0, k, step):
        other = whole[:, start : start + step] @ c + (other if nested else -other)
    inputs = tuple((from_float64(value.astype(np.float64), kind), kind) for value in (a, b, c))
    results = (
        Result(accumulator, from_float64(value, accumulator), any_zero=True)
        for value in (whole @ b + 0.0, other)
    )
    return Work(source, inputs, tuple(results))


def _special(kind: Kind, shape: Shape, accumulator: Kind) -> Work:
    """Rows of infinities, NaN and zeros of both signs, times positive powers of two. Every finite sum is exact."""
    m, n, k = shape.extents
    a = np.random.default_rng(1).integers(-2, 3, (m, k)).astype(kind.host)
    a[0, 3], a[1, 5], a[2, k - 1] = np.inf, -np.inf, np.nan
    a[3, 0], a[3, k - 1] = np.inf, -np.inf
    a[4], a[5] = 0.0, -0.0
    a[6], a[7, k - 1] = 0.0, 64.0
    a[7, : k - 1] = 0.0
    b = (2.0 ** (np.add.outer(np.arange(k), np.arange(n)) % 3)).astype(kind.host)
    c = np.random.default_rng(3).integers(-2, 3, (m, n)).astype(accumulator.host)
    c[0, 1], c[8, 0], c[9, 1], c[6] = -np.inf, np.nan, np.inf, -0.0
    added = shape.params["acc"]
    more = f", acc=tl.load(C + {addresses(c.shape)[0]})" if added else ""
    more += "" if accumulator.name == "fp32" else f", out_dtype={accumulator.language}"
    source = (
        f"def kernel_dot(A, B, {'C, ' * added}O):\n    a = tl.load(A + {addresses(a.shape)[0]})\n"
        f"    b = tl.load(B + {addresses(b.shape)[0]})\n    tl.store(O + {addresses(c.shape)[0]}, tl.dot(a, b{more}))\n"
    )
    with np.errstate(all="ignore"):
        exact = a.astype(np.float64) @ b.astype(np.float64) + (c.astype(np.float64) if added else 0.0)
    inputs = [(a, kind), (b, kind)] + ([(c, accumulator)] if added else [])
    return Work(
        source, tuple(inputs), (Result(accumulator, from_float64(exact, accumulator), any_zero=True),)
    )


def _result(a: Array, b: Array, c: Array, accumulator: Kind, precision: str) -> Result:
    if accumulator.is_integer:
        whole = a.astype(np.int64) @ b.astype(np.int64) + c.astype(np.int64)
        return Result(accumulator, whole.astype(np.int32))
    wide = [v.astype(np.float64) for v in (a, b, c)]
    exact = wide[0] @ wide[1] + wide[2]
    products = np.abs(wide[0]) @ np.abs(wide[1])
    scale = products + np.abs(wide[2])
    working = accumulator.precision
    normal = 2.0**accumulator.lowest_exponent  # below it, the unit stays the same
    stored = np.maximum(np.abs(exact), normal) * 2.0**-working
    allowed = (a.shape[-1] + 2) * 2.0**-working * np.maximum(scale, normal) + stored
    if precision in NARROWED:
        allowed = allowed + 2 * 2.0 ** -NARROWED[precision] * products
    return Result(accumulator, exact, allowed=allowed)


def _dot(name: str, form: str, types: tuple[str, ...], shapes: tuple[Shape, ...], accumulator: str = "", note: str = "",
    refused: tuple[str, ...] = ()) -> Op:  # fmt: skip
    def build(kind: Kind, shape: Shape) -> Work:
        own = accumulator or {"i8": "i32", "fp64": "fp64"}.get(kind.name, "fp32")
        return _build(kind, shape, KINDS[own])

    return Op(name, SECTION, form, build, types, shapes, refused, WITHIN, note=note)


TURNED = tuple(_shape(16, 32, 8, f"_{turn}", turn=turn) for turn in ("a", "b", "ab"))
BATCHED = (
    _shape(8, 32, 16, "_batch4", batch=4),
    _shape(4, 4, 4, "_batch1", batch=1),
    _shape(16, 16, 16, "_batch2_acc", batch=2, acc=True),
)
ADDED = (
    _shape(16, 16, 16, "_acc", acc=True),
    _shape(8, 64, 32, "_acc", acc=True),
    _shape(1, 4, 2, "_acc", acc=True),
)
LOOPED = (
    _shape(16, 32, 64, "_loop", acc=True, loop=32),
    _shape(32, 32, 256, "_loop", acc=True, loop=64),
    _shape(16, 32, 192, "_nested", acc=True, loop=32, parts=3),
)
"""Sums that start from a tile and accumulate in a loop, or in two."""
SPECIAL = (
    _shape(16, 16, 16, "_special", special=True),
    _shape(16, 32, 64, "_special_acc", special=True, acc=True),
)
"""Infinities and NaN, for types that have them."""
PRECISIONS = tuple(_shape(16, 32, 64, f"_{p}", precision=p) for p in ("ieee", "tf32", "tf32x3"))
PRECISE = tuple(_shape(*p, "_ieee", precision="ieee") for p in PRODUCTS)


KEPT = (
    _shape(16, 32, 64),
    _shape(32, 64, 128, "_turned", turn="b"),
)
"""Weights in rows and in columns."""


SHARED = (
    _shape(32, 32, 128, loop=32),
    _shape(16, 64, 64, loop=16),
    _shape(16, 32, 192, "_nested", loop=16, parts=3),
)
"""Sums of several iterations."""

OVER_ITSELF = (_shape(64, 32, 64, loop=16), _shape(128, 16, 128, loop=32))


def _halves() -> Op:
    """Products with the precisions `bf16x3` and `bf16x6`, which split fp32 operands into bf16 parts."""
    shapes = tuple(_shape(16, 32, 64, f"_{p}", precision=p) for p in ("bf16x3", "bf16x6"))
    return _dot("dot_bf16_parts", 'tl.dot(a, b, input_precision="bf16x3")', ("fp32",), shapes)


OPS: tuple[Op, ...] = (
    _dot("dot", "tl.dot(a, b)", TYPES, tuple(_shape(*p) for p in PRODUCTS), refused=tuple(t for t in ("i1", *INTEGER) if t not in ("i8",)),
        note="Accumulates in fp32, fp64 or i32."),
    _dot("dot_acc", "tl.dot(a, b, acc)", TYPES, ADDED),
    _dot("dot_loop", "acc = tl.dot(a, b, acc)", TYPES, LOOPED),
    _dot("dot_special", "tl.dot(a, b, acc)", FLOAT, SPECIAL),
    Op("dot_in_place", SECTION, "store(B, tl.dot(a, load(B)))", _in_place, ("fp16", "bf16", "fp32", "fp64"), OVER_ITSELF, tolerance=WITHIN),
    Op("dot_kept", SECTION, "tl.dot(a, w); tl.store(W, w)", _kept, ("fp16", "bf16", "fp32", "fp64"), KEPT, tolerance=WITHIN),
    Op("dot_shared", SECTION, "tl.dot(a, b, acc); tl.dot(a, c)", _shared, ("fp16", "bf16", "fp32", "fp64"), SHARED, tolerance=WITHIN),
    _dot("dot_turned", "tl.dot(tl.trans(a), tl.trans(b))", TYPES, TURNED),
    _dot("dot_batched", "tl.dot(a, b) of rank 3", TYPES, BATCHED),
    _dot("dot_fp16", "tl.dot(a, b, out_dtype=tl.float16)", ("fp16", *FP8),
        (*(_shape(*p) for p in PRODUCTS), *ADDED, *BATCHED), "fp16"),
    _dot("dot_precision", "tl.dot(a, b, input_precision=...)", ("fp32",), PRECISIONS[1:] + PRECISE + (_shape(16, 32, 64, "_ieee", precision="ieee"),),
        note="`tf32` allows rounding operands to 11 bits, `tf32x3` to 21; the CPU backend keeps more."),
    _halves(),
)  # fmt: skip
