"""Data of the object file apart from code: strings, tables, and declarations of the host routines that kernels call."""

from __future__ import annotations

from collections.abc import Sequence

from triton_porting_kit.compiler.loops.ir.builder import LoopBuilder
from triton_porting_kit.compiler.loops.ir.values import Value


class ModuleData:
    """Constant data and declarations of the module whose function `builder` writes. Equal data is there once."""

    def __init__(self, builder: LoopBuilder) -> None:
        self._builder = builder
        self._symbols: dict[str, str] = {}
        self._declarations: dict[str, str] = {}
        self.has_loop_hints = False
        """Whether a loop carries hints for LLVM (see `compiler.loop_hints`)."""

    def text(self, text: str) -> Value:
        """The address of a UTF-8 string that ends with a zero byte. Zero bytes in the text are dropped."""
        data = text.replace("\0", "").encode(errors="replace")
        escaped = "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in data
        )
        return self._address(f'"{escaped}\\00"', "")

    def table(self, numbers: Sequence[int]) -> Value:
        """The address of a table of 64-bit integers."""
        count = len(numbers)
        return self._address(
            f"dense<{list(numbers)}> : tensor<{count}xi64>", f" : !llvm.array<{count} x i64>"
        )

    def tensor(self, literal: str, shape: Sequence[int], element: str) -> Value:
        """The address of the elements of a dense attribute with that literal, in row-major order."""
        type = element
        for size in reversed(shape):
            type = f"array<{size} x {type}>"
        sizes = "".join(f"{size}x" for size in shape)
        return self._address(f"dense<{literal}> : tensor<{sizes}{element}>", f" : !llvm.{type}")

    def _address(self, initial: str, type: str) -> Value:
        symbol = self._symbols.setdefault(f"({initial}){type}", f"tpk_data_{len(self._symbols)}")
        return self._builder.pure(f"llvm.mlir.addressof @{symbol} : !llvm.ptr", "!llvm.ptr", ())

    def call(self, routine: str, arguments: Sequence[Value], result: str | None = None) -> Value | None:
        """Call a host routine here. Returns its value if a result type is given."""
        types = ", ".join(value.type for value in arguments)
        self._declarations[routine] = f"({types})" + (f" -> {result}" if result else "")
        names = ", ".join(value.name for value in arguments)
        return self._builder.effect(f"llvm.call @{routine}({names}) : ({types}) -> {result or '()'}", result)

    def names(self) -> set[str]:
        """The symbols that are defined or declared here."""
        return {*self._symbols.values(), *self._declarations}

    def lines(self) -> list[str]:
        """The definitions and declarations, as MLIR."""
        data = [
            f"llvm.mlir.global internal constant @{symbol}{definition}"
            for definition, symbol in self._symbols.items()
        ]
        return data + [
            f"llvm.func @{routine}{signature}" for routine, signature in self._declarations.items()
        ]
