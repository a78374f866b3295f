"""The memory that an argument of a launch may reach, as far as the argument knows."""

from __future__ import annotations

from typing import Any


def own_memory(value: Any) -> tuple[int, int] | None:
    """Address and bytes of the whole allocation of a device array or a torch tensor, also of a view of one.

    None for other values: they do not know what they are part of.
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
