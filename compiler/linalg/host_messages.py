"""The executor's definitions of the functions of assertions and prints: calls of the host's routines."""

from __future__ import annotations

from typing import Any

from triton_porting_kit.abi import kernel as abi
from triton_porting_kit.toolchain.mlir import ir

from .messages import FAIL

_WHERE = "%x: i32, %y: i32, %z: i32"


def definition(symbol: str, declaration: Any) -> str:
    """The function of a declaration in the LLVM dialect, as MLIR text."""
    attributes = declaration.attributes
    message = str(attributes["message"].value)
    if symbol.startswith(FAIL):
        constants = [_text(f"{symbol}_text", message), _table(f"{symbol}_shape", list(attributes["shape"]))]
        types = "!llvm.ptr, i32, i32, i32, i64, !llvm.ptr"
        return "\n".join(
            (
                *constants,
                f"llvm.func @{abi.FAIL}({types})",
                f"llvm.func internal @{symbol}({_WHERE}, %element: i64) {{",
                f"%text = llvm.mlir.addressof @{symbol}_text : !llvm.ptr",
                f"%shape = llvm.mlir.addressof @{symbol}_shape : !llvm.ptr",
                f"llvm.call @{abi.FAIL}(%text, %x, %y, %z, %element, %shape) : ({types}) -> ()",
                "llvm.return",
                "}",
            )
        )
    return _print(symbol, message, attributes)


def _print(symbol: str, message: str, attributes: Any) -> str:
    constants, lines, parameters = [_text(f"{symbol}_text", message)], [], _WHERE
    element = shape = data = "%nothing"
    if "element" in attributes:
        sizes = list(attributes["shape"])
        constants.append(_text(f"{symbol}_element", str(attributes["element"].value)))
        constants.append(_table(f"{symbol}_shape", sizes))
        element, shape, data = "%element", "%shape", "%data"
        lines = [
            f"%{name} = llvm.mlir.addressof @{symbol}_{name} : !llvm.ptr" for name in ("element", "shape")
        ]
        # The descriptor of a memref: two pointers, the offset, then sizes and strides.
        rest = ", ".join(f"%d{i}: i64" for i in range(1 + 2 * (len(sizes) - 1)))
        parameters += f", %allocated: !llvm.ptr, %data: !llvm.ptr, {rest}"
    types = "!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, i32, i32, i32"
    return "\n".join(
        (
            *constants,
            f"llvm.func @{abi.PRINT}({types})",
            f"llvm.func internal @{symbol}({parameters}) {{",
            *lines,
            "%nothing = llvm.mlir.zero : !llvm.ptr",
            f"%text = llvm.mlir.addressof @{symbol}_text : !llvm.ptr",
            f"%hex = llvm.mlir.constant({attributes['hex']}) : i32",
            f"llvm.call @{abi.PRINT}(%text, {element}, %hex, {shape}, {data}, %x, %y, %z) : ({types}) -> ()",
            "llvm.return",
            "}",
        )
    )


def _text(name: str, text: str) -> str:
    """A constant of a text in UTF-8 that ends with a zero."""
    size = len(text.encode()) + 1
    quoted = str(ir.StringAttr.get(f"{text}\0"))
    return f"llvm.mlir.global internal constant @{name}({quoted}) : !llvm.array<{size} x i8>"


def _table(name: str, values: list[int]) -> str:
    count = len(values)
    return (
        f"llvm.mlir.global internal constant @{name}(dense<{values}> : tensor<{count}xi64>) "
        f": !llvm.array<{count} x i64>"
    )
