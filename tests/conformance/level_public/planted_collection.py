"""A collection whose package, `planted_kernels`, has a fault of each kind."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.conformance.public.entries import Collection, Lazy, Table
from triton_porting_kit.conformance.public.inputs import normal

torch: Any = Lazy("torch")
kernels: Any = Lazy("planted_kernels")
T = Table()
X = {"x": normal(100)}


def _double(x: Any) -> Any:
    return 2 * x


for name in ("doubled", "beyond", "hidden", "tuned", "dies", "races", "unwritten"):
    T.add(
        name,
        lambda x, name=name: getattr(kernels, name)(x),
        _double,
        X,
        types=("float32",),
        large={"x": normal(128)} if name == "doubled" else {},
        gradients=("x",) if name == "doubled" else (),
    )
T.add("hangs", lambda x: kernels.hangs(x), _double, X, types=("float32",), seconds=3.0)

COLLECTION = Collection(
    name="planted",
    package="planted-kernels",
    version="1.0",
    licence="none",
    needs="nothing",
    entries=T.entries(),
    stubs=("absent_models", "absent_models.layers"),
    module=__name__,
)
