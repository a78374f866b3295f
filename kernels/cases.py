"""Cases: calculations with inputs, references and tolerances, shared by tests, demo and benchmarks.

Inputs are created on demand from a fixed seed, and rounded to the case's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import attention, gelu, giou, layer_norm, matmul, references, rows, softmax, vector_add
from . import dropout as dropout_kernel
from .arrays import Array
from .matmul import DEFAULT_TILES, Tiles
from .places import Operand, Place, round_to
from .tolerances import EXACT, Tolerance, tolerance

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """One result of a case: its name and its tolerance."""

    name: str
    tolerance: Tolerance


@dataclass(frozen=True)
class Deviation:
    """The deviation of one result from the reference.

    `max_error` is the largest absolute error. `severity` is the largest ratio of an element's error to its allowed
    error; above 1 the result fails. NaN counts as an infinite error.
    """

    name: str
    max_error: float
    tolerance: Tolerance
    severity: float

    @property
    def ok(self) -> bool:
        """Whether every element is within tolerance."""
        return self.severity <= 1


@dataclass(frozen=True)
class Case:
    """A kernel on one shape and type.

    `run` is called with the operands as arrays (and optionally `out=`) and `options`; `reference` with the
    operands as float64 and `options`. Both return one array or a tuple of them, in the order of `results`.
    """

    kernel: str
    shape: str
    dtype: str
    operands: Callable[[], tuple[Operand, ...]]
    run: Callable[..., Any]
    reference: Callable[..., Any]
    results: tuple[Result, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    run_options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def id(self) -> str:
        """A readable name, unique among cases: kernel, shape, type and notes."""
        return "-".join(filter(None, (self.kernel, self.shape, self.dtype, self.note)))

    def launch(self, arrays: Sequence[Array], out: Array | None = None) -> tuple[Array, ...]:
        """Run the kernel on arrays created from the operands. The first result is written to `out` if given."""
        extra = {} if out is None else {"out": out}
        return _as_tuple(self.run(*arrays, **self.options, **self.run_options, **extra))

    def compare(self, actual: Sequence[Float64], operands: Sequence[Operand]) -> list[Deviation]:
        """Compare results with the reference, result by result. NaN, or another shape, is never allowed."""
        expected = _as_tuple(self.reference(*(operand.values for operand in operands), **self.options))
        deviations = []
        for result, got, want in zip(self.results, actual, expected, strict=True):
            if got.shape != want.shape:
                deviations.append(Deviation(result.name, np.inf, result.tolerance, np.inf))
                continue
            error = np.nan_to_num(np.abs(got - want), nan=np.inf)
            allowed = result.tolerance.allowed(want)
            with np.errstate(over="ignore"):
                ratio = np.divide(error, allowed, out=np.where(error > 0, np.inf, 0.0), where=allowed > 0)
            worst = float(error.max(initial=0.0)), float(ratio.max(initial=0.0))
            deviations.append(Deviation(result.name, worst[0], result.tolerance, worst[1]))
        return deviations

    def check(self, place: Place) -> list[Deviation]:
        """Create the inputs at `place`, run the kernel, and compare."""
        operands = self.operands()
        outputs = self.launch([place.put(operand) for operand in operands])
        return self.compare([place.get(output) for output in outputs], operands)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _normal(
    dtype: str, *shapes: tuple[int, ...], scale: float = 1.0, shift: float = 0.0
) -> tuple[Operand, ...]:
    generator = np.random.default_rng(20)
    return tuple(round_to(generator.standard_normal(shape) * scale + shift, dtype) for shape in shapes)


def _integers(dtype: str, *shapes: tuple[int, ...]) -> tuple[Operand, ...]:
    generator, ends = np.random.default_rng(20), np.iinfo(dtype)
    return tuple(round_to(generator.integers(ends.min, ends.max + 1, shape), dtype) for shape in shapes)


def vector_add_case(n: int, dtype: str) -> Case:
    """Addition of `n` elements."""
    return Case(
        "vector_add",
        f"{n}",
        dtype,
        lambda: _normal(dtype, (n,), (n,)),
        vector_add.vector_add,
        references.vector_add,
        (Result("out", tolerance("vector_add", dtype)),),
    )


def softmax_case(rows: int, cols: int, dtype: str) -> Case:
    """Softmax over `cols` columns of values spread so that some exponentials are tiny."""
    return Case(
        "softmax",
        f"{rows}x{cols}",
        dtype,
        lambda: _normal(dtype, (rows, cols), scale=3.0),
        softmax.softmax,
        references.softmax,
        (Result("out", tolerance("softmax", dtype)),),
    )


def matmul_case(
    m: int, n: int, k: int, dtype: str, *, leaky_relu: bool = False, tiles: Tiles | None = DEFAULT_TILES
) -> Case:
    """(m, k) times (k, n), with fixed tiles, or tuned ones if `tiles` is None. Supports int8."""
    notes = ["leaky_relu"] * leaky_relu
    if tiles != DEFAULT_TILES:
        notes.append("tuned" if tiles is None else "tiles_" + "x".join(map(str, tiles)))
    return Case(
        "matmul",
        f"{m}x{n}x{k}",
        dtype,
        lambda: _integers(dtype, (m, k), (k, n)) if dtype == "int8" else _normal(dtype, (m, k), (k, n)),
        matmul.matmul,
        references.matmul,
        (Result("out", EXACT if dtype == "int8" else tolerance("matmul", dtype, k)),),
        {"leaky_relu": True} if leaky_relu else {},
        {"tiles": tiles},
        "-".join(notes),
    )


def giou_case(samples: int, boxes: int, dtype: str) -> Case:
    """Pairs of boxes: most overlap; some are disjoint, equal, empty, or invalid and NaN."""
    return Case(
        "giou_loss",
        f"{samples}x{boxes}",
        dtype,
        lambda: _boxes(samples, boxes, dtype),
        giou.giou_loss,
        references.giou_loss,
        (Result("loss", tolerance("giou_loss", "float32")),),
    )


def _boxes(samples: int, boxes: int, dtype: str) -> tuple[Operand, Operand, Operand]:
    generator = np.random.default_rng(30)
    corner = generator.uniform(0, 400, (samples, boxes, 2))
    pred = np.concatenate([corner, corner + generator.uniform(1, 200, corner.shape)], axis=2)
    target = pred + generator.normal(0, 30, pred.shape)
    target = np.concatenate(
        [np.minimum(target[..., :2], target[..., 2:]), np.maximum(target[..., :2], target[..., 2:])], axis=2
    )
    kind = generator.integers(0, 16, (samples, boxes))
    target[kind == 0] += 1000.0
    target[kind == 1] = pred[kind == 1]
    pred[kind == 2, 2:] = pred[kind == 2, :2]
    both = kind == 3
    pred[both, 2:] = pred[both, :2]
    target[both] = pred[both]
    valid = generator.random((samples, boxes)) < 0.8
    valid[samples // 2] = samples == 1  # one sample without valid boxes, unless there is only one
    pred[~valid] = np.nan
    return round_to(pred, dtype), round_to(target, dtype), round_to(valid, "bool")


def _layer_norm_operands(rows: int, cols: int, dtype: str) -> tuple[Operand, ...]:
    (x,) = _normal(dtype, (rows, cols), scale=2.0, shift=3.0)
    weight, bias = _normal(dtype, (cols,), (cols,))
    return x, weight, bias


def layer_norm_case(rows: int, cols: int, dtype: str) -> Case:
    """Forward pass over rows whose mean is not zero."""
    statistics = tolerance("layer_norm", "float32")
    return Case(
        "layer_norm",
        f"{rows}x{cols}",
        dtype,
        lambda: _layer_norm_operands(rows, cols, dtype),
        layer_norm.layer_norm,
        references.layer_norm,
        (Result("y", tolerance("layer_norm", dtype)), Result("mean", statistics), Result("rstd", statistics)),
    )


def layer_norm_backward_case(rows: int, cols: int, dtype: str) -> Case:
    """Backward pass, from the reference's own mean and deviation rounded to float32."""

    def operands() -> tuple[Operand, ...]:
        x, weight, _ = _layer_norm_operands(rows, cols, dtype)
        (dy,) = _normal(dtype, (rows, cols))
        mean, rstd = references.row_statistics(x.values, 1e-5)
        return dy, x, weight, round_to(mean, "float32"), round_to(rstd, "float32")

    def reference(dy: Float64, x: Float64, weight: Float64, *_: Float64) -> tuple[Float64, Float64, Float64]:
        return references.layer_norm_backward(dy, x, weight)

    # A row with one column has zero variance, so 1 / sqrt(eps) multiplies its rounding errors.
    steepest = 1e-5**-0.5 if cols == 1 else 4.0
    sums = tolerance("layer_norm_sums", dtype, rows)
    return Case(
        "layer_norm_backward",
        f"{rows}x{cols}",
        dtype,
        operands,
        layer_norm.layer_norm_backward,
        reference,
        (
            Result("dx", tolerance("layer_norm_dx", dtype, steepest)),
            Result("dweight", sums),
            Result("dbias", sums),
        ),
    )


def dropout_case(n: int, dtype: str, p: float = 0.25, seed: int = 42) -> Case:
    """Dropout of `n` elements; a wrong random bit shows as an error of the element's size."""
    return Case(
        "dropout",
        f"{n}",
        dtype,
        lambda: _normal(dtype, (n,)),
        dropout_kernel.dropout,
        references.dropout,
        (Result("out", tolerance("dropout", dtype)),),
        {"p": p, "seed": seed},
        note=f"p{p}-seed{seed}",
    )


def gelu_residual_case(n: int, dtype: str) -> Case:
    """GELU of `n` scaled and shifted elements plus a residual."""
    return Case(
        "gelu_residual",
        f"{n}",
        dtype,
        lambda: _normal(dtype, (n,), (n,)),
        gelu.gelu_residual,
        references.gelu_residual,
        (Result("out", tolerance("gelu_residual", dtype)),),
        {"a": 1.5, "b": -0.25},
    )


def cumulative_sum_case(n_rows: int, n_cols: int, dtype: str) -> Case:
    """Running sums along rows."""
    return Case(
        "cumulative_sum",
        f"{n_rows}x{n_cols}",
        dtype,
        lambda: _normal(dtype, (n_rows, n_cols)),
        rows.cumulative_sum,
        references.cumulative_sum,
        (Result("out", tolerance("cumulative_sum", dtype, n_cols)),),
    )


def sort_rows_case(n_rows: int, n_cols: int, dtype: str) -> Case:
    """Sorting of each row."""
    return Case(
        "sort_rows",
        f"{n_rows}x{n_cols}",
        dtype,
        lambda: _normal(dtype, (n_rows, n_cols)),
        rows.sort_rows,
        references.sort_rows,
        (Result("out", EXACT),),
    )


# Factors of the float32 tolerance: weights are rounded to the type of the values before the second product.
_WEIGHTS_LOSE = {"float32": 1.0, "float16": 2.0**6, "bfloat16": 2.0**9}


def attention_case(heads: int, n: int, dim: int, dtype: str, *, tiles: Any = None) -> Case:
    """Attention of n queries, keys and values of `dim` dimensions, for each head."""
    return Case(
        "attention",
        f"{heads}x{n}x{dim}",
        dtype,
        lambda: _normal(dtype, *[(heads, n, dim)] * 3),
        attention.attention,
        references.attention,
        (
            Result("out", tolerance("attention", dtype, _WEIGHTS_LOSE[dtype])),
            Result("lse", tolerance("attention", "float32")),
        ),
        run_options={"tiles": tiles},
        note="tuned" if tiles is None else "tiles_" + "x".join(map(str, tiles)),
    )


def attention_backward_case(
    heads: int, n: int, dim: int, dtype: str, *, tiles: Any = None, atomic: bool = False
) -> Case:
    """The gradients, from the reference's own output and logarithms, rounded."""

    def operands() -> tuple[Operand, ...]:
        q, k, v, dout = _normal(dtype, *[(heads, n, dim)] * 4)
        output, lse = references.attention(q.values, k.values, v.values)
        return q, k, v, round_to(output, dtype), round_to(lse, "float32"), dout

    def reference(
        q: Float64, k: Float64, v: Float64, _output: Float64, _lse: Float64, dout: Float64
    ) -> tuple[Float64, Float64, Float64]:
        return references.attention_backward(q, k, v, dout)

    allowed = tolerance("attention", dtype, 4 * _WEIGHTS_LOSE[dtype])
    return Case(
        "attention_backward",
        f"{heads}x{n}x{dim}",
        dtype,
        operands,
        attention.attention_backward,
        reference,
        tuple(Result(name, allowed) for name in ("dq", "dk", "dv")),
        run_options={"tiles": tiles, "atomic": atomic},
        note=("tuned" if tiles is None else "tiles_" + "x".join(map(str, tiles))) + "_atomic" * atomic,
    )
