"""The operations of upstream's dialects in the structured form, and what a compiler may do with each."""

from __future__ import annotations

from .registry import OPERATIONS
from .schema import Trait

_DIVISIONS = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")
_ARITH = (
    "addf", "addi", "andi", "bitcast", "cmpf", "cmpi", "divf", "extf", "extsi", "extui", "fptosi", "fptoui",
    "maximumf", "maxnumf", "maxsi", "maxui", "minimumf", "minnumf", "minsi", "minui", "mulf", "muli",
    "mulsi_extended", "mului_extended", "negf", "ori", "remf", "select", "shli", "shrsi", "shrui", "sitofp", "subf",
    "subi", "truncf", "trunci", "uitofp", "xori",
)  # fmt: skip
_MATH = (
    "absf", "absi", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos",
    "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma", "fpowi", "log", "log10", "log1p", "log2", "powf",
    "round", "roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip

ELEMENTWISE = frozenset(
    [*(f"arith.{name}" for name in (*_ARITH, *_DIVISIONS)), *(f"math.{name}" for name in _MATH)]
)
"""Upstream's element-wise operations, on scalars and on tensors."""

UPSTREAM: dict[str, Trait] = {
    **dict.fromkeys(sorted(ELEMENTWISE), Trait.DEFERRABLE | Trait.MOVABLE),
    # A divisor of 0 traps.
    **{f"arith.{name}": Trait.DEFERRABLE for name in _DIVISIONS},
    **dict.fromkeys(
        ("arith.constant", "tensor.splat", "tensor.empty", "linalg.broadcast", "linalg.transpose"),
        Trait.DEFERRABLE | Trait.MOVABLE,
    ),
    **dict.fromkeys(("tensor.expand_shape", "tensor.collapse_shape", "ub.poison"), Trait.DEFERRABLE),
    **dict.fromkeys(
        (
            "arith.index_cast", "arith.index_castui", "llvm.mlir.zero", "llvm.inttoptr", "llvm.ptrtoint",
            "llvm.getelementptr", "tensor.extract", "tensor.concat", "linalg.matmul", "linalg.batch_matmul",
            "scf.for", "scf.if", "scf.while",
        ),
        Trait.NONE,
    ),
    **dict.fromkeys(("scf.yield", "scf.condition", "func.return"), Trait.TERMINATOR),
}  # fmt: skip
"""Every upstream operation that a kernel's body may have in the structured form."""

TRAITS: dict[str, Trait] = UPSTREAM | {name: cls.traits for name, cls in OPERATIONS.items()}


def having(trait: Trait) -> frozenset[str]:
    """The names of the operations that have all of these traits."""
    return frozenset(name for name, traits in TRAITS.items() if trait in traits)
