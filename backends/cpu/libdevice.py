"""``triton.language.extra.libdevice`` in kernels for the CPU: every function of that interface.

Operands of different types are converted to one, as in Triton's ``extern_elementwise``, if there is a function of that
type. float16 and bfloat16 are computed as float32, and the result has the operands' type again. Integers narrower than
32 bits are extended. A function of signed integers takes unsigned ones by their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton.language import core

from triton_porting_kit.compiler import libdevice

_HALVES = ("fp16", "bf16")


def _function(row: libdevice.Function) -> Callable[..., Any]:
    overloads = {overload.operands: overload for overload in row.overloads}
    table = {
        tuple(map(core.dtype, operands)): (libdevice.symbol(row, overload), core.dtype(overload.result))
        for operands, overload in overloads.items()
    }

    def call(*args: Any, _semantic: Any = None) -> Any:
        given = [_semantic.to_tensor(arg) for arg in args]
        names = tuple(arg.dtype.name for arg in given)
        wanted = _wanted(row, overloads, names, common_type([arg.dtype for arg in given], _semantic))
        operands = [
            arg if name == target else arg.to(core.dtype(target), _semantic=_semantic)
            for arg, name, target in zip(given, names, wanted, strict=True)
        ]
        result = core.extern_elementwise("", "", operands, table, is_pure=True, _semantic=_semantic)
        if row.predicate:
            return result.to(core.int1, _semantic=_semantic)
        floats = {name for name in names if name.startswith(("fp", "bf"))}
        if len(floats) == 1 and floats <= set(_HALVES) and result.dtype.is_fp32():
            return result.to(core.dtype(floats.pop()), _semantic=_semantic)
        return result

    call.__name__ = call.__qualname__ = row.name
    call.__doc__ = f"libdevice's {row.name}; docs/libdevice.md says how accurate it is."
    return core.extern(call)  # type: ignore[no-any-return]


def common_type(types: Sequence[Any], semantic: Any) -> str | None:
    """The type that Triton's ``extern_elementwise`` converts operands to if its table lacks theirs; None if there is
    none.

    It is the type of the sum of the first two operands, then of that and the next one. Pointers have none.
    """
    found, *others = types
    try:
        for other in others:
            found = semantic.computation_type_impl(other, False, found, False, False)
    except TypeError:
        return None
    return str(found.name)


def _wanted(
    row: libdevice.Function,
    overloads: dict[tuple[str, ...], libdevice.Overload],
    names: tuple[str, ...],
    common: str | None,
) -> tuple[str, ...]:
    """The operand types of the overload to call for operands of types `names`, given their `common` type."""
    promoted = (common or "",) * len(names)
    for candidate in (names, promoted):
        if candidate in overloads:
            return candidate
    for candidate in (names, promoted):
        if (found := _extended(overloads, candidate)) is not None:
            return found
    known = "; ".join(", ".join(operands) for operands in overloads)
    raise TypeError(f"libdevice.{row.name} takes ({known}), not ({', '.join(names)})")


def _extended(
    overloads: dict[tuple[str, ...], libdevice.Overload], names: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The overload for operands of these types if each may be made wider, and signed; None if there is none."""
    double = "fp64" in names

    def general(name: str) -> str:
        if name in _HALVES or name == "fp32":
            return "fp64" if double else "fp32"
        return "int32" if name in ("int8", "int16", "uint8", "uint16") else name

    def signed(name: str) -> str:
        return name.removeprefix("u")

    wider = tuple(map(general, names))
    for candidate in (wider, tuple(map(signed, wider))):
        for operands in (candidate, (*candidate[:-1], "u" + candidate[-1])):
            if operands in overloads:
                return operands
    return None


__all__ = list(libdevice.functions())


def __getattr__(name: str) -> Any:
    """Each function is made when a kernel uses it: all of them take longer than compiling a small kernel."""
    row = libdevice.functions().get(name)
    if row is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, _function(row))
