"""FlagGems: operators of torch in Triton. The references are torch's operators."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public.entries import Collection, Function, Input, Known, Lazy, Table
from triton_porting_kit.conformance.public.inputs import booleans, integers, made, normal, uniform

torch: Any = Lazy("torch")
F: Any = Lazy("torch.nn.functional")
gems: Any = Lazy("flag_gems.ops")
T = Table()

TYPES = ("float32", "bfloat16")
X, POSITIVE, UNIT = (
    normal(64, 500),
    uniform(64, 500, low=0.1, high=3.0),
    uniform(64, 500, low=-0.95, high=0.95),
)
SMALL = normal(64, 500, scale=0.5)


_UNMASKED = Known(
    "package", "rows are read beyond their end, because the mask is `True` (flag_gems/ops/argmin.py:88)"
)
_NO_OUTPUT = Known(
    "package",
    "`bitwise_left_shift` and `bitwise_right_shift` pass their default `out=None` on to `pointwise_dynamic`, which "
    "takes it for a tensor (ops/bitwise_left_shift.py:19)",
)


def _gems(name: str) -> Function:
    """The function of FlagGems; looked up when it is called."""
    return lambda *args, **kwargs: getattr(gems, name)(*args, **kwargs)


def _same(name: str, inputs: dict[str, Input], *more: Any, **fields: Any) -> None:
    """An operator that torch has under the same name, with the same arguments; inputs are given by position."""
    ours = fields.pop("own", name)
    where = fields.pop("module", torch)
    keywords = fields.pop("keywords", {})
    fields.setdefault("types", TYPES)
    T.add(
        fields.pop("entry", name),
        lambda **x: _gems(ours)(*x.values(), *more, **keywords),
        lambda **x: getattr(where, name)(*x.values(), *more, **keywords),
        inputs,
        **fields,
    )


# --- element by element --------------------------------------------------------------------------------

for name in (
    "abs", "atan", "ceil", "cos", "erf", "exp", "exp2", "expm1", "isfinite", "isinf", "isnan", "isneginf", "neg",
    "relu", "round", "sigmoid", "signbit", "sin", "square", "tanh", "cosh", "logical_not", "i0",
):  # fmt: skip
    _same(name, {"x": X})
for name in ("log", "log10", "reciprocal", "rsqrt", "sqrt"):
    _same(name, {"x": POSITIVE})
for name in ("acos", "arcsinh"):
    _same(name, {"x": UNIT})
_same("tan", {"x": UNIT})
_same("logit", {"x": uniform(64, 500, low=0.05, high=0.95)})
for name, more in (
    ("gelu", ()), ("silu", ()), ("elu", ()), ("celu", ()), ("selu", ()), ("relu6", ()), ("hardsigmoid", ()),
    ("softplus", ()), ("softshrink", (0.5,)), ("threshold", (0.1, 2.0)), ("glu", (-1,)),
):  # fmt: skip
    _same(name, {"x": X}, *more, module=F)
_same("prelu", {"x": normal(4, 16, 30), "w": normal(16)}, module=F)
_same("clamp", {"x": X}, -0.5, 0.7)
_same("nan_to_num", {"x": X})
_same("bitwise_not", {"x": integers(64, 500, high=1000, dtype="")}, types=("int32", "int64"))
for name in ("add", "sub", "mul", "maximum", "minimum", "fmin", "atan2", "copysign", "hypot", "logaddexp"):
    _same(name, {"x": X, "y": X})
_same("add", {"x": normal(8, 1, 500), "y": normal(64, 1)}, entry="add_broadcast")
_same("div", {"x": X, "y": POSITIVE}, own="true_divide")
_same("pow", {"x": POSITIVE, "y": SMALL}, own="pow_tensor_tensor")
for name in ("eq", "ge", "gt", "le", "lt", "ne"):
    _same(name, {"x": X, "y": X})
for name in ("logical_and", "logical_or", "logical_xor"):
    _same(name, {"x": booleans(64, 500), "y": booleans(64, 500)}, types=("bool",))
for name in ("bitwise_and", "bitwise_or"):
    _same(
        name,
        {"x": integers(64, 500, high=1000, dtype=""), "y": integers(64, 500, high=1000, dtype="")},
        own=f"{name}_tensor",
        types=("int32", "int64"),
    )
for name in ("bitwise_left_shift", "bitwise_right_shift"):
    _same(
        name,
        {"x": integers(64, 500, high=1000, dtype=""), "y": integers(64, 500, high=8, dtype="")},
        types=("int32", "int64"),
        known={"*": _NO_OUTPUT},
    )
_same("lerp", {"x": X, "y": X, "w": UNIT}, own="lerp_tensor")
_same("addcmul", {"x": X, "y": X, "z": X}, keywords={"value": 0.5})
_same("addcdiv", {"x": X, "y": X, "z": POSITIVE}, keywords={"value": 0.5})
_same("where", {"c": booleans(64, 500), "x": X, "y": X}, own="where_self")
_same("isclose", {"x": X, "y": X})

# --- reductions and scans ------------------------------------------------------------------------------

for name in ("sum", "mean", "amax", "max", "min", "prod"):
    _same(name, {"x": SMALL if name != "prod" else uniform(4, 8, low=0.8, high=1.2)}, entry=f"{name}_all")
for name, own in (("sum", "sum_dim"), ("mean", "mean_dim"), ("amax", "amax")):
    for dim in (0, 1):
        _same(name, {"x": X}, [dim], own=own, entry=f"{name}_dim{dim}")
for name in ("max", "min"):
    _same(name, {"x": X}, 1, own=f"{name}_dim", entry=f"{name}_dim1")
for name in ("argmax", "argmin"):
    for dim in (0, 1):
        known = {"*": _UNMASKED} if (name, dim) == ("argmin", 1) else {}
        _same(name, {"x": X}, dim, entry=f"{name}_dim{dim}", types=("float32",), known=known)
for name in ("all", "any"):
    _same(name, {"x": booleans(64, 500)}, types=("bool",))
    _same(name, {"x": booleans(64, 500)}, 1, types=("bool",), own=f"{name}_dim", entry=f"{name}_dim1")
_same("count_nonzero", {"x": integers(64, 500, high=3, dtype="")}, types=("int32", "float32"))
_same("std", {"x": X}, 1)
_same("var", {"x": X}, [1])
_same("var_mean", {"x": X}, [1])
_same("vector_norm", {"x": X}, module=Lazy("torch.linalg"))
_same(
    "cumsum",
    {"x": SMALL},
    1,
    large={"x": normal(2048, 4096)},
    tolerance=4.0,
    because="sums of 500 elements in another order",
)
_same("cummax", {"x": X}, 1, types=("float32",))
_same("cummin", {"x": X}, 1, types=("float32",))
_same("softmax", {"x": X}, 1, large={"x": normal(2048, 4096)})
_same("log_softmax", {"x": X}, 1)
_same("trace", {"x": normal(64, 64)}, types=("float32",))
_same("quantile", {"x": X, "q": uniform(3)}, 1, types=("float32",))

# --- products --------------------------------------------------------------------------------------------

MATRIX = {"x": normal(1024, 1024), "y": normal(1024, 1024)}
A, B = normal(64, 96), normal(96, 80)
_same(
    "mm",
    {"x": A, "y": B},
    seconds=300.0,
    large=MATRIX,
    slow="a third of the time is for AMX; 27 % is for reading tiles of A, 64 bytes of each of 128 rows that are 2 KiB "
    "apart, which all programs of a row read again; torch packs the operands once",
)
_same("bmm", {"x": normal(3, 64, 96), "y": normal(3, 96, 80)}, seconds=300.0)
_same("addmm", {"b": normal(80), "x": A, "y": B}, seconds=300.0)
_same("baddbmm", {"b": normal(3, 64, 80), "x": normal(3, 64, 96), "y": normal(3, 96, 80)}, seconds=300.0)
_same("mv", {"x": A, "y": normal(96)})
_same("addmv", {"b": normal(64), "x": A, "y": normal(96)})
_same("addr", {"b": A, "x": normal(64), "y": normal(96)})
_same("dot", {"x": normal(5000), "y": normal(5000)}, types=("float32",))
_same("vdot", {"x": normal(5000), "y": normal(5000)}, types=("float32",))
_same("kron", {"x": normal(8, 12), "y": normal(5, 7)})

# --- layers and losses -----------------------------------------------------------------------------------

T.add(
    "layer_norm",
    lambda x, w, b: gems.layer_norm(x, (500,), w, b)[0],
    lambda x, w, b: F.layer_norm(x, (500,), w, b),
    {"x": X, "w": normal(500), "b": normal(500)},
    types=TYPES,
)
T.add(
    "group_norm",
    lambda x, w, b: gems.group_norm(x, w, b, 4, 16, 100, 4)[0],
    lambda x, w, b: F.group_norm(x, 4, w, b),
    {"x": normal(4, 16, 10, 10), "w": normal(16), "b": normal(16)},
    types=TYPES,
)
T.add(
    "rms_norm",
    lambda x, w: gems.rms_norm(x, (500,), w, 1e-6),
    lambda x, w: F.rms_norm(x, (500,), w, 1e-6),
    {"x": X, "w": normal(500)},
    types=TYPES,
    gradients=("x", "w"),
)
_same("mse_loss", {"x": X, "y": X}, module=F, own="mse_loss")
_same(
    "soft_margin_loss",
    {"x": X, "y": made(lambda g: torch.randn(64, 500, generator=g).sign(), "case")},
    module=F,
)
T.add(
    "embedding",
    lambda w, i: gems.embedding(w, i),
    lambda w, i: F.embedding(i, w),
    {"w": normal(50, 64), "i": integers(8, 20, high=50)},
    types=TYPES,
)
_same("avg_pool2d", {"x": normal(2, 3, 20, 20)}, (3, 3), module=F, large={"x": normal(8, 64, 112, 112)})
T.add(
    "max_pool2d",
    lambda x: gems.max_pool2d_with_indices(x, (3, 3), (2, 2), (1, 1)),
    lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    {"x": normal(2, 3, 20, 20)},
    types=("float32",),
)
_same("conv1d", {"x": normal(2, 8, 40), "w": normal(16, 8, 3)}, module=F, seconds=300.0)
_same("conv2d", {"x": normal(2, 8, 16, 16), "w": normal(16, 8, 3, 3)}, module=F, seconds=600.0)

# --- movement --------------------------------------------------------------------------------------------

_same("flip", {"x": X}, [1])
_same("roll", {"x": X}, 3, 1)
_same("repeat_interleave", {"x": X}, 3, 0, own="repeat_interleave_self_int")
T.add(
    "index_select",
    lambda x, i: gems.index_select(x, 1, i),
    lambda x, i: torch.index_select(x, 1, i),
    {"x": X, "i": integers(30, high=500)},
    types=TYPES,
)
T.add(
    "gather",
    lambda x, i: gems.gather(x, 1, i),
    lambda x, i: torch.gather(x, 1, i),
    {"x": X, "i": integers(64, 30, high=500)},
    types=TYPES,
)
T.add(
    "scatter",
    lambda x, i, y: gems.scatter(x, 1, i, y),
    lambda x, i, y: torch.scatter(x, 1, i, y),
    {"x": X, "i": made(lambda g: torch.rand(64, 500, generator=g).argsort(1)[:, :30]), "y": normal(64, 30)},
    types=TYPES,
)
T.add(
    "index_add",
    lambda x, i, y: gems.index_add(x, 0, i, y),
    lambda x, i, y: torch.index_add(x, 0, i, y),
    {"x": X, "i": integers(30, high=64), "y": normal(30, 500)},
    types=("float32",),
)
_same("masked_fill", {"x": X, "m": booleans(64, 500)}, 2.0)
_same("masked_select", {"x": X, "m": booleans(64, 500)})
_same("tril", {"x": X})
_same("triu", {"x": X})
_same("diag", {"x": normal(64)})
_same("nonzero", {"x": integers(20, 30, high=2, dtype="")}, types=("int32",))
_same("isin", {"x": integers(20, 30, high=50), "y": integers(10, high=50)}, types=("int64",))
_same("sort", {"x": made(lambda g: torch.randn(16, 500, generator=g), "case")}, types=("float32",))
_same("topk", {"x": X}, 5, types=("float32",))
T.add(
    "cat",
    lambda x, y: gems.cat([x, y], 1),
    lambda x, y: torch.cat([x, y], 1),
    {"x": X, "y": normal(64, 30)},
    types=TYPES,
)
T.add(
    "stack",
    lambda x, y: gems.stack([x, y], 1),
    lambda x, y: torch.stack([x, y], 1),
    {"x": X, "y": X},
    types=TYPES,
)
T.add(
    "pad",
    lambda x: gems.pad(x, (2, 3, 1, 0)),
    lambda x: F.pad(x, (2, 3, 1, 0)),
    {"x": X},
    types=TYPES,
)

COLLECTION = Collection(
    name="flag_gems",
    package="flag-gems",
    version="5.0.2",
    licence="Apache-2.0",
    needs="names no release; block pointers of Triton 3.7 or older",
    triton="3.6.0",
    requires=("sqlalchemy==2.0.48",),
    environment={"GEMS_VENDOR": "nvidia"},
    arranged="`GEMS_VENDOR=nvidia`: else it looks for `nvidia-smi`; its pins of NumPy and PyYAML are left out",
    entries=T.entries(),
)
