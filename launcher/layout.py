"""The packed argument block of a signature, laid out by `triton_porting_kit.abi.block`, as compilers expect it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triton_porting_kit.abi import block
from triton_porting_kit.errors import SignatureError
from triton_porting_kit.launcher.signature import Parameter, Signature
from triton_porting_kit.launcher.types import Kind, scalar_type
from triton_porting_kit.launcher.values import check_hidden, encode


@dataclass(frozen=True)
class ArgSlot:
    """One parameter's position in the block; `offset`, `size` and `alignment` in bytes."""

    name: str
    type: str
    offset: int
    size: int
    alignment: int

    @property
    def kind(self) -> Kind:
        """How the value is converted and stored."""
        return scalar_type(self.type, self.name).kind


@dataclass(frozen=True)
class ArgLayout:
    """The block of one signature: `slots` (one per parameter), `hidden` (after them), `size` in bytes.

    Hidden arguments are parameters that the kernel's author does not see, such as a scratch buffer. A vendor's compiler
    appends them to the function, and the launch passes their values by name.
    """

    signature: Signature
    slots: tuple[ArgSlot, ...]
    hidden: tuple[ArgSlot, ...]
    size: int
    alignment: int = block.ALIGNMENT

    @classmethod
    def from_signature(cls, signature: Signature, hidden: Mapping[str, str] | None = None) -> ArgLayout:
        """Lay out `signature` and after it the `hidden` arguments (name to scalar type), in order."""
        extra = [Parameter((name,), name, type_) for name, type_ in (hidden or {}).items()]
        parameters = (*signature.parameters, *extra)
        sizes = [scalar_type(parameter.type, parameter.name).size for parameter in parameters]
        offsets, end = block.offsets(sizes)
        slots = tuple(
            ArgSlot(parameter.name, parameter.type, offset, size, size)
            for parameter, offset, size in zip(parameters, offsets, sizes, strict=True)
        )
        count = len(signature.parameters)
        return cls(signature, slots[:count], slots[count:], block.round_up(end, block.ALIGNMENT))

    @classmethod
    def from_source(cls, src: Any, hidden: Mapping[str, str] | None = None) -> ArgLayout:
        """The layout for Triton's source object."""
        return cls.from_signature(Signature.from_source(src), hidden)

    def pack(self, args: Sequence[Any], hidden: Mapping[str, Any] | None = None) -> bytes:
        """The block for the arguments of one launch, as Triton passes them: constexprs, tuples, descriptors.

        This is the reference for the native launch code. Raises `SignatureError`, which names the parameter.
        """
        return self.pack_values(self.signature.flatten(args), hidden)

    def pack_values(self, values: Sequence[Any], hidden: Mapping[str, Any] | None = None) -> bytes:
        """The block for flat `values`, one for each of `slots`."""
        if len(values) != len(self.slots):
            raise SignatureError(f"the block has {len(self.slots)} parameters, got {len(values)} values")
        given = hidden or {}
        check_hidden(", ".join(slot.name for slot in self.hidden), list(given))
        packed = bytearray(self.size)
        extra = [given[slot.name] for slot in self.hidden]
        for slot, value in zip((*self.slots, *self.hidden), (*values, *extra), strict=True):
            packed[slot.offset : slot.offset + slot.size] = encode(slot.name, slot.type, value)
        return bytes(packed)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that survives JSON, to be stored in a kernel's metadata."""
        return {
            "signature": self.signature.to_dict(),
            "slots": [[slot.name, slot.type, slot.offset, slot.size] for slot in self.slots],
            "hidden": [[slot.name, slot.type, slot.offset, slot.size] for slot in self.hidden],
            "size": self.size,
            "alignment": self.alignment,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ArgLayout:
        """The layout that `to_dict` wrote. Raises `SignatureError` if its layout rules differ from this release's."""
        hidden = {name: type_ for name, type_, _, _ in data["hidden"]}
        layout = cls.from_signature(Signature.from_dict(data["signature"]), hidden)
        if layout.to_dict() != dict(data):
            raise SignatureError(
                "the stored argument layout differs from the one that this release makes of the same "
                "signature; compile the kernel again (clear its cache)"
            )
        return layout
