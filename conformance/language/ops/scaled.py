"""Products of microscaling formats."""

from __future__ import annotations

import numpy as np

from triton_porting_kit.conformance.language.expression import addresses
from triton_porting_kit.conformance.language.shapes import Shape
from triton_porting_kit.conformance.language.table import Op, Tolerance
from triton_porting_kit.conformance.language.values import samples
from triton_porting_kit.conformance.language.work import Result, Work
from triton_porting_kit.conformance.types import KINDS, Array, Kind

SECTION = "Matrix products with scales"
FORMATS = {"fp8e4nv": "e4m3", "fp8e5": "e5m2", "bf16": "bf16", "fp16": "fp16", "u8": "e2m1"}
"""The name of a format in `tl.dot_scaled`, by the type of its elements. One byte holds two e2m1 elements."""
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
GROUP = 32
"""The number of elements that share a scale. A scale is a power of two, stored as a byte that is its biased
exponent."""
WITHIN = Tolerance(0, "K + 4 roundings of fp32, each half a unit of the sum of the products' magnitudes")


def _operand(kind: Kind, rows: int, k: int, seed: int) -> tuple[Array, Array]:
    """Elements as they are stored, with k along the rows, and the numbers that they represent."""
    random = np.random.default_rng(seed)
    if kind.name == "u8":
        packed = random.integers(0, 256, (rows, k // 2)).astype(np.uint8)
        numbers = np.stack([E2M1[packed & 15], E2M1[packed >> 4]], -1).reshape(rows, k)
        return packed, numbers
    values = samples(kind, 400, seed)
    values = values[np.isfinite(values) & (np.abs(values) < 64)]
    stored = random.choice(values, (rows, k)).astype(kind.host)
    return stored, stored.astype(np.float64)


def _scales(rows: int, k: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(120, 134, (rows, k // GROUP)).astype(np.uint8)


def _spread(scales: Array) -> Array:
    return np.repeat(2.0 ** (scales.astype(np.float64) - 127), GROUP, 1)


def _scaled(right: str) -> Op:
    def build(kind: Kind, shape: Shape) -> Work:
        m, n, k = shape.extents
        with_right = shape.params["right"]
        other = KINDS[right]
        a, wide_a = _operand(kind, m, k, 1)
        b, wide_b = _operand(other, n, k, 2)
        scale_a, scale_b = _scales(m, k, 3), _scales(n, k, 4)
        if shape.params["far"]:
            # One scale is as small as the other is large, so that products have an ordinary size.
            away = np.random.default_rng(5).integers(60, 100, (1, k // GROUP)).astype(np.uint8)
            scale_a, scale_b = scale_a - away, scale_b + away
        stored_b = np.ascontiguousarray(b.T)
        parameters = "A, B, S, R, O" if with_right else "A, B, S, O"
        second = f"tl.load(R + {addresses(scale_b.shape)[0]})" if with_right else "None"
        source = (
            f"def kernel_dot_scaled({parameters}):\n    a = tl.load(A + {addresses(a.shape)[0]})\n"
            f"    b = tl.load(B + {addresses(stored_b.shape)[0]})\n    s = tl.load(S + {addresses(scale_a.shape)[0]})\n"
            f'    r = tl.dot_scaled(a, s, "{FORMATS[kind.name]}", b, {second}, "{FORMATS[right]}")\n'
            f"    tl.store(O + {addresses((m, n))[0]}, r)\n"
        )
        left = wide_a * _spread(scale_a)
        factor = wide_b * (_spread(scale_b) if with_right else 1.0)
        exact, scale = left @ factor.T, np.abs(left) @ np.abs(factor).T
        u8 = KINDS["u8"]
        inputs = [(a, kind), (stored_b, other), (scale_a, u8)] + ([(scale_b, u8)] if with_right else [])
        result = Result(KINDS["fp32"], exact, allowed=(k + 4) * 2.0**-24 * scale + 1e-300)
        return Work(source, tuple(inputs), (result,))

    types = tuple(t for t in FORMATS)
    form = f'tl.dot_scaled(a, scale, format, b, b_scale, "{FORMATS[right]}")'
    note = "The column u8 stands for e2m1, two elements in a byte." if right == "fp8e4nv" else ""
    wide = tuple(t for t in types if t != "fp16")  # fp16 cannot represent numbers in the range of the scales
    shapes = SHAPES[:-1] if right == "fp16" else SHAPES
    name, only = f"dot_scaled_{FORMATS[right]}", {SHAPES[-1].name: wide}
    return Op(name, SECTION, form, build, types, shapes, (), WITHIN, note=note, only=only)


SHAPES = tuple(
    Shape(f"{m}x{n}x{k}{name}", (m, n, k), {"right": name != "_one_scale", "far": name == "_far_scales"})
    for m, n, k, name in (
        (16, 16, 64, ""),
        (32, 16, 128, ""),
        (16, 32, 64, "_one_scale"),
        (16, 16, 64, "_far_scales"),
    )
)

OPS: tuple[Op, ...] = tuple(_scaled(right) for right in FORMATS)
