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
    "result; fp32 operands may be narrowed to 11 bits unless the precision says otherwise",
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
    (16, 32, 128),  # as deep as the deepest matrix instructions on 8-bit types
)
NARROWED = {"tf32": 11, "bf16x3": 15, "bf16x6": 22, "tf32x3": 21}
"""Bits of the significand that an operand keeps at least."""


def _shape(m: int, n: int, k: int, name: str = "", **params: object) -> Shape:
    return Shape(
        f"{m}x{n}x{k}{name}",
        (m, n, k),
        {"acc": False, "batch": 0, "turn": "", "precision": "", "loop": 0} | params,
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
    inputs = [(stored[0], kind), (stored[1], kind)] + ([(c, accumulator)] if shape.params["acc"] else [])
    base = c if shape.params["acc"] else np.zeros_like(c)
    allowed = precision or ("tf32" if kind.name == "fp32" else "")  # what GPUs multiply in by default
    return Work(source, tuple(inputs), (_result(a, b, base, accumulator, allowed),))


def _result(a: Array, b: Array, c: Array, accumulator: Kind, precision: str) -> Result:
    if accumulator.is_integer:
        whole = a.astype(np.int64) @ b.astype(np.int64) + c.astype(np.int64)
        return Result(accumulator, whole.astype(np.int32))
    wide = [v.astype(np.float64) for v in (a, b, c)]
    exact = wide[0] @ wide[1] + wide[2]
    products = np.abs(wide[0]) @ np.abs(wide[1])
    scale = products + np.abs(wide[2])
    working = accumulator.precision
    stored = np.maximum(np.abs(exact), 2.0**accumulator.lowest_exponent) * 2.0**-accumulator.precision
    allowed = (a.shape[-1] + 2) * 2.0**-working * scale + stored
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
PRECISIONS = tuple(_shape(16, 32, 64, f"_{p}", precision=p) for p in ("ieee", "tf32", "tf32x3"))
PRECISE = tuple(_shape(*p, "_ieee", precision="ieee") for p in PRODUCTS)


def _halves() -> Op:
    """bf16 operands of fp32 are what the precision says."""
    shapes = tuple(_shape(16, 32, 64, f"_{p}", precision=p) for p in ("bf16x3", "bf16x6"))
    return _dot("dot_bf16_parts", 'tl.dot(a, b, input_precision="bf16x3")', ("fp32",), shapes)


OPS: tuple[Op, ...] = (
    _dot("dot", "tl.dot(a, b)", TYPES, tuple(_shape(*p) for p in PRODUCTS), refused=tuple(t for t in ("i1", *INTEGER) if t not in ("i8",)),
        note="Accumulates in fp32, fp64 or i32."),
    _dot("dot_acc", "tl.dot(a, b, acc)", TYPES, ADDED),
    _dot("dot_turned", "tl.dot(tl.trans(a), tl.trans(b))", TYPES, TURNED),
    _dot("dot_batched", "tl.dot(a, b) of rank 3", TYPES, BATCHED),
    _dot("dot_fp16", "tl.dot(a, b, out_dtype=tl.float16)", ("fp16", *FP8),
        (*(_shape(*p) for p in PRODUCTS), *ADDED, *BATCHED), "fp16"),
    _dot("dot_precision", "tl.dot(a, b, input_precision=...)", ("fp32",), PRECISIONS[1:] + PRECISE + (_shape(16, 32, 64, "_ieee", precision="ieee"),),
        note="`tf32` allows operands of 11 bits, `tf32x3` of 21; more is kept here."),
    _halves(),
)  # fmt: skip
