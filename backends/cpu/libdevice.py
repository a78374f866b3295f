"""What ``triton.language.extra.libdevice`` is in kernels for the CPU: every function of that interface.

float16 and bfloat16 are computed as float32, and the result has the type of the operands again. Integers narrower
than 32 bits are extended, and a function of signed integers alone takes unsigned ones by their bits.
"""

from __future__ import annotations

from collections.abc import Callable
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
        wanted = _wanted(row, overloads, names)
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


def _wanted(
    row: libdevice.Function, overloads: dict[tuple[str, ...], libdevice.Overload], names: tuple[str, ...]
) -> tuple[str, ...]:
    """The operand types of the overload to call for operands of the types `names`."""
    if names in overloads:
        return names
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
    known = "; ".join(", ".join(operands) for operands in overloads)
    raise TypeError(f"libdevice.{row.name} takes ({known}), not ({', '.join(names)})")


for _row in libdevice.functions().values():
    globals()[_row.name] = _function(_row)

__all__ = list(libdevice.functions())
