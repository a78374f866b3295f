"""The properties of types that the importer needs, parsed from their text once per distinct type."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from triton_porting_kit.toolchain.mlir import ir

from .affine import Shape

_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.+)>$")
# An address space is a number, or since Triton 3.9 a name. All of them are the same memory here.
_POINTER = re.compile(r'!tt\.ptr<(.+?)(?:, *(?:\d+|"\w+"))?>$')
_WIDTH = re.compile(r"(?:[su]?i|bf|f|tf)(\d+)")


class TypeInfo(NamedTuple):
    """A scalar (`shape` is None) or tensor type of Triton IR."""

    shape: Shape | None
    element: str
    pointee: str | None
    """Element type that a pointer type points to, e.g. ``f16``; None for other types."""

    @property
    def is_pointer(self) -> bool:
        return self.pointee is not None

    @property
    def is_index(self) -> bool:
        """Whether addresses may be computed from this integer type: no booleans, and no tensors of narrow integers.

        Arithmetic on narrow integers is likely to wrap around, which address arithmetic is assumed not to do.
        """
        return self.element in ("i32", "i64") or (self.shape is None and self.element in ("i8", "i16"))

    @property
    def bits(self) -> int:
        return element_bits(self.element)

    @property
    def element_bytes(self) -> int:
        """Bytes in memory of the pointee; booleans take a byte, pointers eight."""
        assert self.pointee is not None
        return max(1, element_bits(self.pointee) // 8)


@functools.lru_cache(maxsize=256)
def element_bits(element: str) -> int:
    """Bits of an element type by its name (``i1`` 1, ``bf16`` 16, ``f8E4M3FN`` 8, a pointer 64)."""
    if element.startswith("!"):
        return 64
    match = _WIDTH.match(element)
    if match is None:
        raise ValueError(f"element type {element} has no known width")
    return int(match[1])


@functools.lru_cache(maxsize=1024)  # kernels have the same types again and again
def _parse(text: str) -> TypeInfo:
    shape: Shape | None = None
    tensor = _TENSOR.match(text)
    if tensor is not None:
        shape = tuple(int(n) for n in tensor[1].split("x")[:-1])
        text = tensor[2]
    pointer = _POINTER.match(text)
    return TypeInfo(shape, text, None if pointer is None else pointer[1])


class Types:
    """The types of one context: what is known of Triton's, and the upstream types made from them."""

    def __init__(self) -> None:
        self._infos: dict[Any, TypeInfo] = {}
        self._parsed: dict[str, Any] = {}
        self._tensors: dict[tuple[Shape, Any], Any] = {}
        self.i1 = ir.IntegerType.get_signless(1)
        self.i8 = ir.IntegerType.get_signless(8)
        self.i32 = ir.IntegerType.get_signless(32)
        self.i64 = ir.IntegerType.get_signless(64)
        self.index = ir.IndexType.get()
        self.pointer = ir.Type.parse("!llvm.ptr")

    def info(self, value: Any) -> TypeInfo:
        """The info of an SSA value's type."""
        return self.info_of_type(value.type)

    def info_of_type(self, kind: Any) -> TypeInfo:
        """The info of a type."""
        found = self._infos.get(kind)
        if found is None:
            found = self._infos[kind] = _parse(str(kind))
        return found

    def plain(self, kind: Any) -> Any:
        """`kind` with pointers as !llvm.ptr, and tensors of pointers as i64 addresses (see `Rewriter.plain`)."""
        info = self.info_of_type(kind)
        if not info.is_pointer:
            return kind
        return self.pointer if info.shape is None else self.tensor(info.shape, self.i64)

    def parse(self, text: str) -> Any:
        """A type by its text, cached."""
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = ir.Type.parse(text)
        return found

    def element(self, name: str) -> Any:
        """The upstream type of a value whose Triton element type is `name`: pointers become `!llvm.ptr`."""
        return self.pointer if name.startswith("!tt.ptr") else self.parse(name)

    def tensor(self, shape: Shape, element: Any) -> Any:
        """`tensor<shape x element>`."""
        found = self._tensors.get((shape, element))
        if found is None:
            found = self._tensors[shape, element] = ir.RankedTensorType.get(shape, element)
        return found

    def shaped(self, shape: Shape | None, element: Any) -> Any:
        """`element`, or a tensor of it if there is a shape."""
        return element if shape is None else self.tensor(shape, element)
