"""Operators of the torch device: what makes, copies and views tensors, and the fallback for all others."""

from __future__ import annotations

from triton_porting_kit.pytorch.operators import copies, factories, fallback, metadata, registry

__all__ = ["copies", "factories", "fallback", "metadata", "register", "registry"]


def register() -> None:
    """Register them with torch's dispatcher."""
    registry.register()
    fallback.register()
