"""Launching kernels in checked mode: the bounds of their pointer arguments are passed with the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_porting_kit.launcher.entry import LaunchEntry
from triton_porting_kit.launcher.layout import ArgLayout
from triton_porting_kit.launcher.packed import PackedLauncher
from triton_porting_kit.launcher.types import Kind
from triton_porting_kit.launcher.values import check_leading

UNKNOWN = (2**64 - 1, 0)
"""The bounds of memory whose extent is not known: the device decides about each access."""

NOTHING = (0, 0)

Bounds = tuple[int, int]
"""Address and size in bytes."""

_PARTS = (".begin", ".bytes")
"""Suffixes of the names of the two hidden arguments for each pointer."""


class CheckedLauncher:
    """A `PackedLauncher` for a kernel compiled to check its accesses; same call and same errors.

    After the kernel's parameters, the block has the address and the size in bytes of the memory of each pointer
    argument. `allocation_of` returns the device allocation that contains an address, None if there is none.
    """

    def __init__(
        self,
        src: Any,
        metadata: Any,
        entry: LaunchEntry,
        allocation_of: Callable[[int], Bounds | None],
        *,
        on_host: bool = False,
    ) -> None:
        plain = ArgLayout.from_source(src)
        self._signature = plain.signature
        self._pointers = [
            (index, slot.name) for index, slot in enumerate(plain.slots) if slot.kind == Kind.POINTER
        ]
        hidden = {f"{name}{part}": "u64" for _, name in self._pointers for part in _PARTS}
        self._launch = PackedLauncher(src, metadata, entry, hidden=hidden, on_host=on_host)
        self._allocation_of = allocation_of
        self.layout = self._launch.layout
        self.guard = self._launch.guard
        self.metadata = metadata

    def __call__(self, *call: Any) -> None:
        check_leading(len(call))
        values = self._signature.flatten(call[9:])
        bounds: dict[str, int] = {}
        for index, name in self._pointers:
            bounds.update(zip((f"{name}{part}" for part in _PARTS), self._bounds(values[index]), strict=True))
        self._launch(*call, **bounds)

    def _bounds(self, value: Any) -> Bounds:
        """The bounds of a pointer argument. The launcher itself refuses values that cannot be arguments."""
        if (known := own_memory(value)) is not None:
            return known
        address = 0 if value is None else value if isinstance(value, int) else _address(value)
        if address is None or not 0 <= address < 2**64:
            return UNKNOWN
        if address == 0:
            return NOTHING
        return self._allocation_of(address) or UNKNOWN


def _address(value: Any) -> int | None:
    data_ptr = getattr(value, "data_ptr", None)
    address = None if data_ptr is None else data_ptr()
    return address if isinstance(address, int) else None


def own_memory(value: Any) -> Bounds | None:
    """Address and size in bytes of the whole allocation of a device array or a torch tensor, even for a view of it.

    None for other values, whose allocation is not known.
    """
    while hasattr(value, "base") and hasattr(value.base, "data_ptr"):  # triton.reinterpret wraps arrays
        value = value.base
    if hasattr(value, "allocation"):
        start, size = value.allocation
        return int(start), int(size)
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        return int(storage.data_ptr()), int(storage.nbytes())
    return None
